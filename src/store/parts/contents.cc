#include "store/parts/contents.h"

#include <fmt/core.h>

#include "base/limits.h"

namespace weft {

Result<VersionContent> Contents::of(const Digest& manifest) const {
  if (!decode_) return Error{Errc::internal, fmt::format("{}: opened without a decoder of manifests", path_)};
  WEFT_TRY(std::shared_ptr<const ManifestReader> reader, manifests_.open(manifest));
  return decode_(reader->bytes());
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
