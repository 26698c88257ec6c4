// The content of a version, as the store needs it: blobs/content.cc reads it from a manifest, whose format the store
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

// What the index knows of an architecture: a set of items, each with those that must be there for it to be there. The
// larger two sets' intersection, the more two architectures have in common from their inputs on. Ordered by the length
// of the longest path to an item. blobs/arch_items.h makes it of vertices; equal architectures give equal lists.
struct ArchItem {
  Digest id;
  std::vector<std::uint32_t> inputs;  // positions of items before it, ascending
};

inline constexpr std::uint32_t kLinksOfView = 2;  // one in tensors/, one in layers/

struct VersionContent {
  struct FileContent {
    std::vector<Extent> extents;
  };
  std::vector<FileContent> files;
  std::vector<ViewKey> views;    // by tensor ordinal; of each tensor the mount shows kLinksOfView entries
  std::uint64_t tree_nodes = 0;  // inode numbers to set aside
  std::uint64_t logical_bytes = 0;
  VersionKind kind = VersionKind::model;
  std::vector<ArchItem> architecture;  // distinct ids
  Digest outline;                      // manifest.h
};
using ContentDecoder = std::function<Result<VersionContent>(std::span<const std::byte> manifest)>;

}  // namespace weft
