// The contents of versions: manifests, decoded.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "catalog/manifests.h"
#include "os/safe_path.h"
#include "weft/model/version_content.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class Contents {
 public:
  Contents(SafePath store_path, const Manifests& manifests, ContentDecoder decode)
      : path_(std::move(store_path)), manifests_(manifests), decode_(std::move(decode)) {}
  // Errors as Manifests::open(). Errc::internal: the store was opened without a decoder.
  Result<VersionContent> of(const Digest& manifest) const;

 private:
  const SafePath path_;
  const Manifests& manifests_;
  const ContentDecoder decode_;
};

std::vector<ContentId> blobs_of(const VersionContent& content);  // each once, sorted
std::size_t rows_of(const VersionContent& content);              // index rows, approximately
bool is_large(const VersionContent& content);                    // more rows than one batch

}  // namespace weft
