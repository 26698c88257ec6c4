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

struct VersionContent {
  struct FileContent {
    std::vector<Extent> extents;
  };
  struct ViewContent {
    ViewKey key;
    std::uint32_t links = 0;
  };
  std::vector<FileContent> files;
  std::vector<ViewContent> views;  // by tensor ordinal
  std::uint64_t tree_nodes = 0;    // inode numbers to set aside
  std::uint64_t logical_bytes = 0;
  std::vector<ArchItem> architecture;  // distinct ids
  Digest outline;                      // manifest.h
};
using ContentDecoder = std::function<Result<VersionContent>(std::span<const std::byte> manifest)>;

}  // namespace weft
