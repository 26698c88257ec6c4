// A cache of the .toc files of a directory of packs.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/lru_cache.h"
#include "diskformat/toc.h"
#include "os/safe_path.h"
#include "weft/result.h"

namespace weft {

// The places of a pack's blobs, in a compact form that every open pack keeps. A place from the index counts only if the
// pack's .toc lists it: the rows of a stale index page have valid checksums and may still name wrong places. Immutable;
// any thread.
class PackListing {
 public:
  explicit PackListing(const PackToc& toc);
  bool has(const ContentId& id, std::uint64_t offset) const;
  std::size_t size() const { return blobs_.size(); }
  bool cached() const { return cached_; }
  const std::string& boot() const { return boot_; }
  std::size_t memory_bytes() const { return blobs_.size() * sizeof(Blob); }

 private:
  // A fingerprint instead of the id is enough against mistakes. An attacker who can write the .toc needs no collision.
  struct Blob {
    std::uint64_t offset;
    std::uint64_t fingerprint;
  };
  static std::uint64_t fingerprint(const ContentId& id);
  std::vector<Blob> blobs_;  // by offset
  bool cached_;
  std::string boot_;
};

// Takes at most about 64 MiB. Any thread.
class TocCache {
 public:
  explicit TocCache(SafePath directory) : directory_(std::move(directory)) {}
  // Returns the listing of the current .toc. Under the pack's lock it stays current.
  Result<std::shared_ptr<const PackListing>> listing(PackId pack);
  // As PackDir::chunks.
  Result<std::vector<Digest>> chunks(const ContentId& id, const BlobPlace& place);

 private:
  // A .toc as it was read when its file had the state `file`.
  struct Known {
    struct stat file {};
    std::shared_ptr<const PackListing> listing;
    std::shared_ptr<const PackToc> whole;  // null until a peer asks for digests: most packs are only read locally
  };
  Result<std::shared_ptr<const Known>> read(PackId pack, bool whole);

  const SafePath directory_;
  LruCache<Known> known_{64U << 20U};
};

}  // namespace weft
