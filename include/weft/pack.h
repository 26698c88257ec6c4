// Bytes of a store that are open: packs (packs/packs.h), places in them, manifests (catalog/manifests.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/store_rows.h"

namespace weft {

// Bytes of a pack, open: they stay readable and the same while this lives, whatever gc does. Any thread.
class PackReader {
 public:
  virtual ~PackReader() = default;
  virtual int fd() const = 0;  // O_RDONLY; for pread, mmap, passthrough; stays the reader's
  virtual std::uint64_t size() const = 0;
  virtual PackId id() const = 0;
  // All of it as memory (os/file_map.h), while this lives; null where it cannot be had.
  virtual const std::byte* map() const = 0;
};

// Where an extent's bytes are, in a pack that is open.
struct OpenPlace {
  std::shared_ptr<const PackReader> pack;
  std::uint64_t offset = 0;
};

// A manifest's bytes, verified by their digest; they stay readable while this lives.
class ManifestReader {
 public:
  virtual ~ManifestReader() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};

// Keeps a version whole while it lives, also when the version is removed and gc runs: its manifest, inodes and bytes.
// Any thread; the last copy lets go.
using VersionHold = std::shared_ptr<const void>;

}  // namespace weft
