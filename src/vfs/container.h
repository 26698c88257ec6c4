// The .safetensors of a layer's subtree, composed from a header of ours and blobs that are there already.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/tree.h"

namespace weft {

struct Container {
  std::string header;
  std::vector<ContentId> blobs;  // what follows it, in order
  struct Origin {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
  };
  std::vector<Origin> origins;  // of each blob: where it is in a published file
};

Container make_container(const VersionTree& tree, std::uint32_t layer);
std::uint64_t container_size(const VersionTree& tree, std::uint32_t layer);

}  // namespace weft
