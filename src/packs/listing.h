// What a pack's .toc lists, kept while packs are read: a place that the index names counts only when it is listed. An
// index page of another day verifies row by row, and may name a place where the blob is not.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "diskformat/toc.h"
#include "packs/packs.h"
#include "weft/result.h"

namespace weft {

// Immutable; any thread.
class PackListing {
 public:
  explicit PackListing(const PackToc& toc);
  bool has(const ContentId& id, std::uint64_t offset) const;
  std::size_t size() const { return blobs_.size(); }
  bool cached() const { return cached_; }
  const std::string& boot() const { return boot_; }

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

// Listings of the packs that were asked for lately, at most some 64 MiB of them. Any thread.
class PackListings {
 public:
  // Of the .toc that is there now; under the pack's lock it stays so.
  Result<std::shared_ptr<const PackListing>> get(const SafePath& directory, PackId pack);

 private:
  struct Known {
    struct stat toc {};
    std::shared_ptr<const PackListing> listing;
  };
  std::mutex mutex_;
  std::unordered_map<PackId, Known> known_;  // guarded by mutex_
  std::size_t blobs_ = 0;                    // guarded by mutex_; of all known
};

}  // namespace weft
