// Open bytes of a store: packs (packs/packs.h), places in them, manifests (catalog/manifests.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/store_rows.h"

namespace weft {

// The id of a pack in memory with bytes that this node does not keep. The daemon soon empties the file, whoever has it
// open. A reader in another process that gets fewer bytes than it expects fetches them again.
inline constexpr PackId kPassingPack = 0;

// An open pack. Its bytes stay readable and unchanged while this lives, whatever gc does. Any thread.
class PackReader {
 public:
  virtual ~PackReader() = default;
  virtual int fd() const = 0;  // O_RDONLY; for pread, mmap, passthrough; owned by this object
  virtual std::uint64_t size() const = 0;
  virtual PackId id() const = 0;
  // Returns the whole pack as memory (os/file_map.h), valid while this lives; nullptr if it cannot be mapped.
  virtual const std::byte* map() const = 0;
};

// The place of an extent's bytes in an open pack.
struct OpenPlace {
  std::shared_ptr<const PackReader> pack;
  std::uint64_t offset = 0;
};

// The bytes of a manifest, verified by their digest, and readable while this lives.
class ManifestReader {
 public:
  virtual ~ManifestReader() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};

// Keeps a version whole while it lives: its manifest, inodes and bytes, also if the version is removed and gc runs. Any
// thread; the last copy releases the version.
using VersionHold = std::shared_ptr<const void>;

}  // namespace weft
