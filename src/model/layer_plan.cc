#include "model/layer_plan.h"

#include <fmt/core.h>

#include <unordered_map>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::uint64_t kNodesPerLayer = 3;  // directory, layer.json, container

// "a.b.c" -> "a.b.", "c" -> "". With the dot, the layer of an empty name differs from the root.
std::string_view prefix_of(std::string_view name) {
  return name.substr(0, name.rfind('.') + 1);
}

class LayerPlanner {
 public:
  LayerPlanner(const Manifest& manifest, std::uint64_t& entries_left)
      : manifest_(manifest), entries_left_(entries_left) {
    plan_.layers.emplace_back();
    known_.emplace("", 0);
  }

  Status add(TensorRef ref) {
    const Tensor& tensor = manifest_.files[ref.file].tensors[ref.tensor];
    std::size_t layers_before = plan_.layers.size();
    std::uint32_t home = layer_of(prefix_of(tensor.name));
    plan_.home.push_back(home);
    plan_.layers[home].layer.direct.push_back(ref);
    std::size_t depth = add_to_subtrees(home, ref, safetensors_can_hold(tensor));
    std::uint64_t entries = depth + kNodesPerLayer * (plan_.layers.size() - layers_before);
    if (entries > entries_left_)
      return Error{Errc::invalid, fmt::format("{}: tensor \"{}\": names of tensors make too many layers",
                                              manifest_.files[ref.file].path, printable(tensor.name))};
    entries_left_ -= entries;
    return {};
  }

  Result<LayerPlan> take() {
    for (const PlannedLayer& planned : plan_.layers) WEFT_CHECK(check_container(planned));
    return std::move(plan_);
  }

 private:
  std::uint32_t layer_of(std::string_view prefix) {
    if (auto it = known_.find(prefix); it != known_.end()) return it->second;
    std::string_view name = prefix.substr(0, prefix.size() - 1);
    std::string_view outer = prefix_of(name);
    std::uint32_t parent = layer_of(outer);
    auto index = static_cast<std::uint32_t>(plan_.layers.size());
    PlannedLayer& planned = plan_.layers.emplace_back();
    planned.layer.name = name;
    planned.parent = parent;
    planned.component = name.substr(outer.size());
    known_.emplace(prefix, index);
    return index;
  }

  std::size_t add_to_subtrees(std::uint32_t index, TensorRef ref, bool container) {
    for (std::size_t depth = 1;; ++depth) {
      PlannedLayer& planned = plan_.layers[index];
      planned.layer.subtree.push_back(ref);
      if (index == 0) return depth;
      planned.container |= container;
      index = planned.parent;
    }
  }

  static Status check_container(const PlannedLayer& planned) {
    if (!planned.container) return {};
    const std::size_t bytes = container_name(planned.component).size();
    if (bytes <= limits::kNameMax) return {};
    return Error{Errc::invalid,
                 fmt::format("layer \"{}\": its container's name would have {} bytes, expected at most {}",
                             printable(planned.layer.name), bytes, limits::kNameMax)};
  }

  const Manifest& manifest_;
  std::uint64_t& entries_left_;
  LayerPlan plan_;
  std::unordered_map<std::string_view, std::uint32_t> known_;  // by prefix_of() of what is in them
};

}  // namespace

std::string container_name(std::string_view component) {
  return escape_component(component) + ".safetensors";
}

std::uint64_t layer_entries_max(std::uint64_t tensors) {
  return limits::kTreeEntriesSpare + limits::kTreeEntriesPerTensor * tensors;
}

Result<LayerPlan> plan_layers(const Manifest& manifest, const Scope& scope, std::uint64_t& entries_left) {
  LayerPlanner planner(manifest, entries_left);
  for (std::uint32_t file : scope.files) {
    auto tensors = static_cast<std::uint32_t>(manifest.files[file].tensors.size());
    for (std::uint32_t tensor = 0; tensor < tensors; ++tensor) WEFT_CHECK(planner.add({file, tensor}));
  }
  return planner.take();
}

}  // namespace weft
