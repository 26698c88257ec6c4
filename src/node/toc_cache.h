// The digests of blobs by the .toc files of a directory of packs, a store's or an origin's, of those read lately.
#pragma once

#include <string>
#include <vector>

#include "node/vfs_cache.h"
#include "store/packs.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class TocCache {
 public:
  explicit TocCache(std::string path) : path_(std::move(path)) {}
  // Of all chunks of the blob, which lies there. Errc::not_found when the pack lists another, or none, at this place.
  Result<std::vector<Digest>> digests(const ContentId& id, BlobPlace place);
  void clear() { tocs_.clear(); }

 private:
  using TocPointer = std::shared_ptr<const PackToc>;
  Result<TocPointer> read(PackId pack);
  const std::string path_;
  LruCache<PackToc> tocs_{64U << 20U};
};

}  // namespace weft
