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

// Counts the directories of sorted paths: one is new if the previous path has another in its place.
class DirectoryCount {
 public:
  void add(std::string_view path) {
    const std::string_view below = path.substr(common_directory(path, before_).size());
    directories_ += static_cast<std::uint64_t>(std::ranges::count(below, '/'));
    before_ = path;
  }
  std::uint64_t directories() const { return directories_; }

 private:
  std::string_view before_;
  std::uint64_t directories_ = 0;
};

// Counts files and directories.
std::uint64_t published_nodes(const Manifest& manifest) {
  DirectoryCount count;
  std::uint64_t entries = 0;
  each_published(manifest, [&](std::string_view path, std::optional<std::uint32_t>) {
    count.add(path);
    ++entries;
  });
  return entries + count.directories();
}

// Counts the nodes of safetensors/.
std::uint64_t view_nodes(const Manifest& manifest) {
  const SafetensorsView view = plan_safetensors_view(manifest);
  DirectoryCount count;
  std::uint64_t entries = 0;
  for (const ViewEntry& entry : view_entries(manifest, view)) {
    count.add(entry.path);
    ++entries;
  }
  return entries + count.directories();
}

std::uint64_t layer_nodes(const LayerCount& count) {
  return 2 * count.layers - 1 + count.containers;  // the root's directory exists already
}

}  // namespace

Result<std::uint64_t> VersionTree::count(const Manifest& manifest) {
  WEFT_TRY(const std::vector<Scope> scopes, plan_scopes(manifest));
  const std::uint64_t tensors = tensor_count(manifest);
  std::uint64_t nodes =
      kRootCount + published_nodes(manifest) + view_nodes(manifest) + 2 * tensors + 2 * (scopes.size() - 1);
  if (tensors == 0) return nodes;
  std::uint64_t entries_left = layer_entries_max(tensors);
  for (const Scope& scope : scopes) {
    WEFT_TRY(const LayerCount count, count_layers(manifest, scope, entries_left));
    nodes += layer_nodes(count);
  }
  return nodes;
}

}  // namespace weft
