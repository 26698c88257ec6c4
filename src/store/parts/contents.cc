#include "store/parts/contents.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/limits.h"

namespace weft {

Result<VersionContent> Contents::of(const Digest& manifest) const {
  if (!decode_) return Error{Errc::internal, fmt::format("{}: opened without a decoder of manifests", path_)};
  WEFT_TRY(std::shared_ptr<const ManifestReader> reader, manifests_.open(manifest));
  return decode_(reader->bytes());
}

std::vector<ContentId> blobs_of(const VersionContent& content) {
  std::vector<ContentId> ids;
  for (const VersionContent::FileContent& file : content.files)
    for (const Extent& extent : file.extents) ids.push_back(extent.id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::size_t rows_of(const VersionContent& content) {
  std::size_t rows = 1 + content.views.size();
  for (const VersionContent::FileContent& file : content.files) rows += file.extents.size();
  return rows;
}

bool is_large(const VersionContent& content) {
  return rows_of(content) > limits::kBatchRows;
}

}  // namespace weft
