// Which blob of another version each blob of a version is best coded against (src/model/base_pairs.cc). Pure.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "weft/content.h"
#include "weft/manifest.h"

namespace weft {

struct BasePair {
  ContentId base;          // of the same length as the blob, and other content
  std::uint8_t width = 1;  // bytes of an element: 1, 2, 4 or 8 (base/chunk_codec.h)
  bool operator==(const BasePair&) const = default;
};

// By the blob of the child.
using BasePairs = std::unordered_map<ContentId, BasePair>;

inline constexpr std::uint64_t kPairedBytesMin = 4096;  // of a blob; a shorter one is not worth a base

// Pairs the tensors that have one name, type and shape in both versions, in whatever file. A tensor of the file with
// the child's path comes first. Of the other extents it pairs those at one offset, of one length, in files of one path
// and size. Blobs that both versions have are not in it.
BasePairs pair_bases(const Manifest& child, const Manifest& parent);

}  // namespace weft
