// Splits the tensor names of one scope at their dots into layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/tree_scopes.h"
#include "weft/model/tree.h"

namespace weft {

struct PlannedLayer {
  Layer layer;                 // its dir is set later
  std::uint32_t parent = 0;    // index in the plan
  std::string_view component;  // the last part of its name, unescaped; views the manifest
  bool container = false;      // safetensors can hold a tensor below it; false for the root
};

std::string container_name(std::string_view component);  // of a layer whose name ends in `component`

struct LayerPlan {
  std::vector<PlannedLayer> layers;  // [0] is the root; then by first tensor, outer before inner
  std::vector<std::uint32_t> home;   // the layer that directly contains each tensor of the scope, in manifest order
};

// Returns how many nodes and references the layers of a version with so many tensors may have together.
std::uint64_t layer_entries_max(std::uint64_t tensors);

// Errc::invalid if a container's name is too long, or if the layers need more nodes and references than `entries_left`,
// which is reduced by their number. The plan views the manifest.
Result<LayerPlan> plan_layers(const Manifest& manifest, const Scope& scope, std::uint64_t& entries_left);

// As plan_layers(), but only counts.
struct LayerCount {
  std::uint64_t layers = 0;
  std::uint64_t containers = 0;
};
Result<LayerCount> count_layers(const Manifest& manifest, const Scope& scope, std::uint64_t& entries_left);

}  // namespace weft
