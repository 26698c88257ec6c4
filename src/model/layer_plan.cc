#include "model/layer_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::uint64_t kNodesPerLayer = 3;  // directory, layer.json, container

// "a.b.c" -> "a.b.", "c" -> "". The dot tells the layer of an empty name from the root.
std::string_view prefix_of(std::string_view name) {
  return name.substr(0, name.rfind('.') + 1);
}

// The layers that the names of tensors make, without their tensors: a version may have millions, and most callers only
// count layers.
class LayerNames {
 public:
  struct Node {
    std::string_view prefix;  // views the manifest
    std::uint32_t parent = 0;
    bool container = false;
  };

  LayerNames(const Manifest& manifest, std::uint64_t& entries_left)
      : manifest_(manifest), entries_left_(entries_left), slots_(64) {
    add_node("", 0);
  }

  const std::vector<Node>& nodes() const { return nodes_; }

  // Adds the layers of a tensor's name. Returns the layer that directly contains the tensor.
  Result<std::uint32_t> add(TensorRef ref) {
    const Tensor& tensor = manifest_.files[ref.file].tensors[ref.tensor];
    const std::size_t layers_before = nodes_.size();
    const std::uint32_t home = layer_of(prefix_of(tensor.name));
    const std::size_t depth = mark_containers(home, safetensors_can_hold(tensor));
    const std::uint64_t entries = depth + kNodesPerLayer * (nodes_.size() - layers_before);
    if (entries > entries_left_)
      return Error{Errc::invalid, fmt::format("{}: tensor \"{}\": names of tensors make too many layers",
                                              manifest_.files[ref.file].path, printable(tensor.name))};
    entries_left_ -= entries;
    return home;
  }

  Status check() const {
    for (std::uint32_t layer = 0; layer < nodes_.size(); ++layer) WEFT_CHECK(check_container(layer));
    return {};
  }

  std::string_view name(std::uint32_t layer) const {
    const std::string_view prefix = nodes_[layer].prefix;
    return prefix.substr(0, prefix.size() - (prefix.empty() ? 0 : 1));
  }
  std::string_view component(std::uint32_t layer) const {
    return name(layer).substr(nodes_[nodes_[layer].parent].prefix.size());
  }

 private:
  std::uint32_t layer_of(std::string_view prefix) {
    if (const std::uint32_t known = slots_[slot_of(prefix)]; known != 0) return known - 1;
    const std::uint32_t parent = layer_of(prefix_of(prefix.substr(0, prefix.size() - 1)));
    return add_node(prefix, parent);
  }

  std::uint32_t add_node(std::string_view prefix, std::uint32_t parent) {
    const auto layer = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({prefix, parent});
    const bool full = 2 * nodes_.size() > slots_.size();
    if (full) slots_.assign(2 * slots_.size(), 0);
    for (std::uint32_t i = full ? 0 : layer; i <= layer; ++i) slots_[slot_of(nodes_[i].prefix)] = i + 1;
    return layer;
  }

  // Returns the slot of this prefix, or the free slot where it belongs.
  std::size_t slot_of(std::string_view prefix) const {
    std::size_t slot = std::hash<std::string_view>{}(prefix) & (slots_.size() - 1);
    while (slots_[slot] != 0 && nodes_[slots_[slot] - 1].prefix != prefix) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  std::size_t mark_containers(std::uint32_t layer, bool container) {
    for (std::size_t depth = 1;; ++depth) {
      if (layer == 0) return depth;
      nodes_[layer].container |= container;
      layer = nodes_[layer].parent;
    }
  }

  Status check_container(std::uint32_t layer) const {
    if (!nodes_[layer].container) return {};
    const std::size_t bytes = container_name(component(layer)).size();
    if (bytes <= limits::kNameMax) return {};
    return Error{Errc::invalid,
                 fmt::format("layer \"{}\": its container's name would have {} bytes, expected at most {}",
                             printable(name(layer)), bytes, limits::kNameMax)};
  }

  const Manifest& manifest_;
  std::uint64_t& entries_left_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> slots_;  // hash table by prefix: layer + 1, or 0 if free; at most half full
};

template <class Visit>
Status each_tensor(const Manifest& manifest, const Scope& scope, const Visit& visit) {
  for (std::uint32_t file : scope.files) {
    auto tensors = static_cast<std::uint32_t>(manifest.files[file].tensors.size());
    for (std::uint32_t tensor = 0; tensor < tensors; ++tensor) WEFT_CHECK(visit(TensorRef{file, tensor}));
  }
  return {};
}

}  // namespace

std::string container_name(std::string_view component) {
  return escape_component(component) + ".safetensors";
}

std::uint64_t layer_entries_max(std::uint64_t tensors) {
  return limits::kTreeEntriesSpare + limits::kTreeEntriesPerTensor * tensors;
}

Result<LayerPlan> plan_layers(const Manifest& manifest, const Scope& scope, std::uint64_t& entries_left) {
  LayerNames names(manifest, entries_left);
  LayerPlan plan;
  WEFT_CHECK(each_tensor(manifest, scope, [&](TensorRef ref) -> Status {
    WEFT_TRY(std::uint32_t layer, names.add(ref));
    plan.layers.resize(names.nodes().size());
    plan.home.push_back(layer);
    plan.layers[layer].layer.direct.push_back(ref);
    for (;; layer = names.nodes()[layer].parent) {
      plan.layers[layer].layer.subtree.push_back(ref);
      if (layer == 0) return {};
    }
  }));
  WEFT_CHECK(names.check());
  plan.layers.resize(names.nodes().size());
  for (std::uint32_t i = 0; i < plan.layers.size(); ++i) {
    PlannedLayer& planned = plan.layers[i];
    planned.layer.name = names.name(i);
    planned.parent = names.nodes()[i].parent;
    planned.component = names.component(i);
    planned.container = names.nodes()[i].container;
  }
  return plan;
}

Result<LayerCount> count_layers(const Manifest& manifest, const Scope& scope, std::uint64_t& entries_left) {
  LayerNames names(manifest, entries_left);
  WEFT_CHECK(each_tensor(manifest, scope, [&names](TensorRef ref) -> Status {
    const auto added = names.add(ref);
    return added.ok() ? Status{} : Status{added.error()};
  }));
  WEFT_CHECK(names.check());
  const auto containers = std::ranges::count(names.nodes(), true, &LayerNames::Node::container);
  return LayerCount{names.nodes().size(), static_cast<std::uint64_t>(containers)};
}

}  // namespace weft
