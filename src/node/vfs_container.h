// The .safetensors of a layer's subtree, composed from a header of ours and blobs that are there already.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/manifest.h"
#include "weft/tree.h"

namespace weft {

struct Container {
  std::string header;
  std::vector<ContentId> blobs;  // what follows it, in order
};

// Tensors of types that safetensors lacks are left out.
Container make_container(const Manifest& manifest, std::span<const TensorRef> tensors);
std::uint64_t container_size(const Manifest& manifest, std::span<const TensorRef> tensors);

}  // namespace weft
