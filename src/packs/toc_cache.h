// What the .toc files of a directory of packs say, of those read lately.
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

// Where blobs lie, in little memory: every open pack keeps it, and a place that the index names counts only when it is
// listed. An index page of another day verifies row by row, and may name a place where the blob is not. Immutable; any
// thread.
class PackListing {
 public:
  explicit PackListing(const PackToc& toc);
  bool has(const ContentId& id, std::uint64_t offset) const;
  std::size_t size() const { return blobs_.size(); }
  bool cached() const { return cached_; }
  const std::string& boot() const { return boot_; }
  std::size_t memory_bytes() const { return blobs_.size() * sizeof(Blob); }

 private:
  // A fingerprint in place of the whole id: this is against mistakes, not against forgers, who could write the .toc.
  struct Blob {
    std::uint64_t offset;
    std::uint64_t fingerprint;
  };
  static std::uint64_t fingerprint(const ContentId& id);
  std::vector<Blob> blobs_;  // by offset
  bool cached_;
  std::string boot_;
};

// At most some 64 MiB. Any thread.
class TocCache {
 public:
  explicit TocCache(SafePath directory) : directory_(std::move(directory)) {}
  // Of the .toc that is there now; under the pack's lock it stays so.
  Result<std::shared_ptr<const PackListing>> listing(PackId pack);
  // As PackDir::chunks.
  Result<std::vector<Digest>> chunks(const ContentId& id, const BlobPlace& place);

 private:
  // One .toc as it was when its file had this state.
  struct Known {
    struct stat file {};
    std::shared_ptr<const PackListing> listing;
    std::shared_ptr<const PackToc> whole;  // null until a peer asks for digests: most packs of a node are only read
  };
  Result<std::shared_ptr<const Known>> read(PackId pack, bool whole);

  const SafePath directory_;
  LruCache<Known> known_{64U << 20U};
};

}  // namespace weft
