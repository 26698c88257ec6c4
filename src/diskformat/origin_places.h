// The locations of the blobs of one manifest at an origin: one record, places/<sha256 of the manifest>. Only user of
// its schema (in the .cc).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct Places {
  Digest manifest;
  std::vector<std::pair<ContentId, BlobPlace>> blobs;  // ordered by id, each once

  std::optional<BlobPlace> find(const ContentId& id) const;
};

std::vector<std::byte> encode_places(const Places& places);
// Errc::corrupt: not a whole record, a record of another manifest, or blobs that are out of order, empty or beyond the
// largest offset.
Result<Places> decode_places(std::span<const std::byte> bytes, const Digest& manifest, std::string_view where);

}  // namespace weft
