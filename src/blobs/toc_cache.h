// The digests of blobs by the .toc files of a directory of packs, a store's or an origin's, of those read lately.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/lru_cache.h"
#include "diskformat/toc.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class TocCache {
 public:
  using Read = std::function<Result<PackToc>(PackId)>;
  // `read` reads the .toc of a pack; `path` names the directory in messages.
  TocCache(std::string path, Read read) : path_(std::move(path)), read_(std::move(read)) {}
  // Of all chunks of the blob, which lies there. Errc::not_found when the pack lists another, or none, at this place.
  Result<std::vector<Digest>> digests(const ContentId& id, BlobPlace place);
  void clear() { tocs_.clear(); }

 private:
  using TocPointer = std::shared_ptr<const PackToc>;
  Result<TocPointer> read(PackId pack);
  const std::string path_;
  const Read read_;
  LruCache<PackToc> tocs_{64U << 20U};
};

}  // namespace weft
