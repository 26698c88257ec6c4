// Splits the tensor names of one scope at their dots into layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/tree_scopes.h"
#include "weft/tree.h"

namespace weft {

struct PlannedLayer {
  Layer layer;                 // its dir is not known yet
  std::uint32_t parent = 0;    // index in the plan
  std::string_view component;  // the last part of its name, unescaped; views the manifest
  bool container = false;      // safetensors can hold something below it, and it is not the root
};

std::string container_name(std::string_view component);  // of the layer of that last part

struct LayerPlan {
  std::vector<PlannedLayer> layers;  // [0] is the root; then by first tensor, outer before inner
  std::vector<std::uint32_t> home;   // the layer that each tensor of the scope is directly in, in manifest order
};

// How many nodes and references the layers of a version with so many tensors may take together.
std::uint64_t layer_entries_max(std::uint64_t tensors);

// Errc::invalid when a container's name is too long, and when nodes and references of the layers take more than
// `entries_left`, which is lessened by what they take. Views the manifest.
Result<LayerPlan> plan_layers(const Manifest& manifest, const Scope& scope, std::uint64_t& entries_left);

// The same, only counted.
struct LayerCount {
  std::uint64_t layers = 0;
  std::uint64_t containers = 0;
};
Result<LayerCount> count_layers(const Manifest& manifest, const Scope& scope, std::uint64_t& entries_left);

}  // namespace weft
