// The content of a version, as the store needs it. blobs/content.cc reads it from a manifest, whose format the store
// does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// An item of an architecture in the index. An architecture is a set of items, each with the items that it depends on.
// The more items two sets have in common, the more the two architectures share from their inputs on. Items are sorted
// by the length of the longest path to them. blobs/arch_items.h makes them from vertices; equal architectures give
// equal lists.
struct ArchItem {
  Digest id;
  std::vector<std::uint32_t> inputs;  // indexes of earlier items, ascending
};

inline constexpr std::uint32_t kLinksOfView = 2;  // one in tensors/, one in layers/

struct VersionContent {
  struct FileContent {
    std::vector<Extent> extents;
  };
  std::vector<FileContent> files;
  std::vector<ViewKey> views;    // by tensor ordinal; the mount shows kLinksOfView entries of each
  std::uint64_t tree_nodes = 0;  // inode numbers to reserve
  std::uint64_t logical_bytes = 0;
  VersionKind kind = VersionKind::model;
  std::vector<ArchItem> architecture;  // distinct ids
  Digest outline;                      // manifest.h
};
using ContentDecoder = std::function<Result<VersionContent>(std::span<const std::byte> manifest)>;

}  // namespace weft
