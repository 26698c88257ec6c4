// Chooses for each blob of a version the best base among the blobs of another version (src/model/base_pairs.cc). Pure.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "weft/content.h"
#include "weft/model/manifest.h"

namespace weft {

struct BasePair {
  ContentId base;          // has the length of the blob and another content
  std::uint8_t width = 1;  // bytes of an element: 1, 2, 4 or 8 (base/chunk_codec.h)
  bool operator==(const BasePair&) const = default;
};

// From a blob of the child to its base.
using BasePairs = std::unordered_map<ContentId, BasePair>;

inline constexpr std::uint64_t kPairedBytesMin = 4096;  // bytes; a base does not pay for a shorter blob

// Pairs the tensors that have one name, type and shape in both versions, in any file. Prefers a tensor of the file with
// the child's path. Pairs other extents if their offset and length are equal, in files of one path and size. Leaves out
// blobs that the parent has.
BasePairs pair_bases(const Manifest& child, const Manifest& parent);

}  // namespace weft
