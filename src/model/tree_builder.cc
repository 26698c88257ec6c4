#include "model/tree_builder.h"

#include <algorithm>

namespace weft {
namespace {

template <class Body>
void for_each_tensor(const Manifest& manifest, const Scope& scope, Body body) {
  for (std::uint32_t file : scope.files) {
    const auto& tensors = manifest.files[file].tensors;
    for (std::uint32_t i = 0; i < tensors.size(); ++i) body(TensorRef{file, i}, std::string_view(tensors[i].name));
  }
}

}  // namespace

TreeBuilder::TreeBuilder(std::shared_ptr<const Manifest> manifest) : tree_(std::make_shared<VersionTree>()) {
  tree_->manifest_ = std::move(manifest);
}

Result<std::shared_ptr<const VersionTree>> TreeBuilder::build() {
  WEFT_TRY(scopes_, plan_scopes(manifest()));
  number_tensors();
  for (std::uint32_t root = 0; root < kRootCount; ++root) add(NodeKind::dir, root, "");
  add_published();
  add_tensors();
  WEFT_CHECK(add_layers());
  add_view_tree();
  link_children();
  return std::shared_ptr<const VersionTree>(std::move(tree_));
}

std::uint32_t TreeBuilder::add(NodeKind kind, std::uint32_t parent, std::string name) {
  Node& node = tree_->nodes_.emplace_back();
  node.kind = kind;
  node.parent = parent;
  node.name = std::move(name);
  return tree_->size() - 1;
}

void TreeBuilder::add_view(TensorRef ref, std::uint32_t parent, std::string_view name) {
  Node& node = tree_->nodes_[add(NodeKind::tensor_view, parent, escape_component(name) + ".npy")];
  node.file = ref.file;
  node.tensor = ref.tensor;
}

// The directories of a list of sorted paths: all entries below one directory follow one another.
class TreeBuilder::Directories {
 public:
  Directories(TreeBuilder& builder, std::uint32_t root) : builder_(builder), open_{{"", root}} {}

  // Returns the directory of a path and the last component. Adds the directories that it is the first path of.
  std::pair<std::uint32_t, std::string_view> place(std::string_view path) {
    while (!path.starts_with(open_.back().prefix)) open_.pop_back();
    std::size_t begin = open_.back().prefix.size();
    for (auto slash = path.find('/', begin); slash != path.npos; slash = path.find('/', begin)) {
      const std::string_view name = path.substr(begin, slash - begin);
      const std::uint32_t dir = builder_.add(NodeKind::dir, open_.back().node, std::string(name));
      begin = slash + 1;
      open_.push_back({path.substr(0, begin), dir});
    }
    return {open_.back().node, path.substr(begin)};
  }

 private:
  struct OpenDir {
    std::string_view prefix;  // "a/b/"
    std::uint32_t node;
  };
  TreeBuilder& builder_;
  std::vector<OpenDir> open_;
};

void TreeBuilder::add_published() {
  Directories directories(*this, kPublishedRoot);
  each_published(manifest(), [&](std::string_view path, std::optional<std::uint32_t> file) {
    const auto [dir, name] = directories.place(path);
    const std::uint32_t node = add(file ? NodeKind::file : NodeKind::dir, dir, std::string(name));
    if (!file) return;
    tree_->nodes_[node].file = *file;
    tree_->node_of_file_.push_back(node);
  });
}

void TreeBuilder::add_view_tree() {
  tree_->view_ = plan_safetensors_view(manifest());
  const auto kind_of = [this](const ViewEntry& entry) {
    if (entry.kind == ViewEntry::Kind::directory) return NodeKind::dir;
    if (entry.kind == ViewEntry::Kind::published) return NodeKind::view_file;
    const bool container = tree_->view_.made[entry.index].kind == ViewFile::Kind::container;
    return container ? NodeKind::made_container : NodeKind::made_text;
  };
  Directories directories(*this, kSafetensorsRoot);
  for (const ViewEntry& entry : view_entries(manifest(), tree_->view_)) {
    const auto [dir, name] = directories.place(entry.path);
    tree_->nodes_[add(kind_of(entry), dir, std::string(name))].file = entry.index;
  }
}

void TreeBuilder::add_tensors() {
  for (const Scope& scope : scopes_)
    add_scope_tensors(scope, scope.dir.empty() ? kTensorsRoot : add(NodeKind::dir, kTensorsRoot, scope.dir));
}

void TreeBuilder::add_scope_tensors(const Scope& scope, std::uint32_t dir) {
  for_each_tensor(manifest(), scope, [&](TensorRef ref, std::string_view name) { add_view(ref, dir, name); });
}

Status TreeBuilder::add_layers() {
  if (tensor_count(manifest()) == 0) return {};
  entries_left_ = layer_entries_max(tensor_count(manifest()));
  for (const Scope& scope : scopes_)
    WEFT_CHECK(add_scope_layers(scope, scope.dir.empty() ? kLayersRoot : add(NodeKind::dir, kLayersRoot, scope.dir)));
  return {};
}

Status TreeBuilder::add_scope_layers(const Scope& scope, std::uint32_t dir) {
  WEFT_TRY(LayerPlan plan, plan_layers(manifest(), scope, entries_left_));
  std::vector<std::uint32_t> dirs;  // by index in the plan
  dirs.reserve(plan.layers.size());
  for (PlannedLayer& planned : plan.layers) {
    if (!dirs.empty()) dir = add(NodeKind::dir, dirs[planned.parent], escape_component(planned.component));
    dirs.push_back(dir);
    add_layer(planned, dir);
  }
  auto home = plan.home.begin();
  for_each_tensor(manifest(), scope, [&](TensorRef ref, std::string_view name) {
    add_view(ref, dirs[*home++], name.substr(name.rfind('.') + 1));
  });
  return {};
}

// Adds layer.json in the layer's directory, and the container beside the directory.
void TreeBuilder::add_layer(PlannedLayer& planned, std::uint32_t dir) {
  auto layer = static_cast<std::uint32_t>(tree_->layers_.size());
  tree_->nodes_[dir].layer = layer;
  tree_->nodes_[add(NodeKind::layer_json, dir, "layer.json")].layer = layer;
  if (planned.container) {
    const std::uint32_t parent = tree_->nodes_[dir].parent;
    tree_->nodes_[add(NodeKind::layer_container, parent, container_name(planned.component))].layer = layer;
  }
  planned.layer.dir = dir;
  tree_->layers_.push_back(std::move(planned.layer));
}

void TreeBuilder::number_tensors() {
  std::uint32_t next = 0;
  for (const File& file : manifest().files) {
    tree_->first_tensor_.push_back(next);
    next += static_cast<std::uint32_t>(file.tensors.size());
  }
  // A tensor belongs to the first layer that uses it; layers tied to that one come later.
  auto& vertex_of = tree_->vertex_of_tensor_;
  vertex_of.assign(next, VersionTree::kNoVertex);
  const std::vector<ArchLayer>& layers = manifest().architecture.layers;
  for (std::uint32_t vertex = 0; vertex < layers.size(); ++vertex)
    for (const auto& [role, position] : layers[vertex].tensors)
      if (position < next && vertex_of[position] == VersionTree::kNoVertex) vertex_of[position] = vertex;
}

// Sorts the nodes below the roots by directory (counting sort), then the children of each directory by name.
void TreeBuilder::link_children() {
  auto& nodes = tree_->nodes_;
  auto& ranges = tree_->child_of_;
  nodes.shrink_to_fit();
  ranges.resize(nodes.size());
  for (std::size_t i = kRootCount; i < nodes.size(); ++i) ++ranges[nodes[i].parent].second;
  std::uint32_t begin = 0;
  for (auto& [first, last] : ranges) {
    std::uint32_t count = last;
    first = last = begin;
    begin += count;
  }
  auto& list = tree_->child_list_;
  list.resize(begin);
  for (std::uint32_t i = kRootCount; i < nodes.size(); ++i) list[ranges[nodes[i].parent].second++] = i;
  auto name = [&](std::uint32_t i) { return std::string_view(nodes[i].name); };
  for (auto [first, last] : ranges) std::ranges::sort(std::span(list).subspan(first, last - first), {}, name);
}

}  // namespace weft
