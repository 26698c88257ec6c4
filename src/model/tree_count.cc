// Counts the nodes of a tree by the builder's plans.
#include <algorithm>
#include <string_view>

#include "model/layer_plan.h"
#include "model/tree_scopes.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

// Returns the common part of both paths up to the last '/'.
std::string_view common_directory(std::string_view a, std::string_view b) {
  const auto [end, other] = std::ranges::mismatch(a, b);
  const auto common = static_cast<std::size_t>(end - a.begin());
  return a.substr(0, a.substr(0, common).rfind('/') + 1);
}

// Counts files and directories. Paths are sorted, so a directory is new if the previous path has another in its place.
std::uint64_t published_nodes(const Manifest& manifest) {
  std::uint64_t nodes = 0;
  std::string_view before;
  each_published(manifest, [&](std::string_view path, std::optional<std::uint32_t>) {
    const std::string_view below = path.substr(common_directory(path, before).size());
    nodes += 1 + static_cast<std::uint64_t>(std::ranges::count(below, '/'));
    before = path;
  });
  return nodes;
}

std::uint64_t layer_nodes(const LayerCount& count) {
  return 2 * count.layers - 1 + count.containers;  // the root's directory exists already
}

}  // namespace

Result<std::uint64_t> VersionTree::count(const Manifest& manifest) {
  WEFT_TRY(const std::vector<Scope> scopes, plan_scopes(manifest));
  const std::uint64_t tensors = tensor_count(manifest);
  std::uint64_t nodes = kRootCount + published_nodes(manifest) + 2 * tensors + 2 * (scopes.size() - 1);
  if (tensors == 0) return nodes;
  std::uint64_t entries_left = layer_entries_max(tensors);
  for (const Scope& scope : scopes) {
    WEFT_TRY(const LayerCount count, count_layers(manifest, scope, entries_left));
    nodes += layer_nodes(count);
  }
  return nodes;
}

}  // namespace weft
