#include "weft/model/tree.h"

#include <algorithm>

#include "model/tree_builder.h"

namespace weft {
namespace {

std::size_t heap_bytes(const std::string& text) {
  return text.capacity() > std::string().capacity() ? text.capacity() + 1 : 0;
}

template <class T>
std::size_t heap_bytes(const std::vector<T>& items) {
  return items.capacity() * sizeof(T);
}

std::size_t heap_bytes(const Architecture& architecture) {
  std::size_t bytes = heap_bytes(architecture.layers);
  for (const ArchLayer& layer : architecture.layers)
    bytes += heap_bytes(layer.kind) + heap_bytes(layer.name) + heap_bytes(layer.params) + heap_bytes(layer.tensors) +
             heap_bytes(layer.inputs);
  return bytes;
}

std::size_t heap_bytes(const Manifest& manifest) {
  std::size_t bytes = heap_bytes(manifest.files) + heap_bytes(manifest.architecture) + heap_bytes(manifest.directories);
  for (const std::string& path : manifest.directories) bytes += heap_bytes(path);
  for (const File& file : manifest.files) {
    bytes += heap_bytes(file.path) + heap_bytes(file.format) + heap_bytes(file.extents) + heap_bytes(file.tensors) +
             heap_bytes(file.metadata);
    for (const Tensor& tensor : file.tensors)
      bytes += heap_bytes(tensor.name) + heap_bytes(tensor.shape) + heap_bytes(tensor.descr) + heap_bytes(tensor.runs) +
               heap_bytes(tensor.strides) + heap_bytes(tensor.grid);
    for (const auto& [key, value] : file.metadata) bytes += heap_bytes(key) + heap_bytes(value);
    bytes += heap_bytes(file.hidden);
    for (const HiddenTensor& hidden : file.hidden)
      bytes += heap_bytes(hidden.name) + heap_bytes(hidden.why) + heap_bytes(hidden.shape);
  }
  return bytes;
}

std::size_t heap_bytes(const SafetensorsView& view) {
  std::size_t bytes = view.shown.capacity() / 8 + heap_bytes(view.made) + heap_bytes(view.kept);
  for (const ViewFile& made : view.made) bytes += heap_bytes(made.path) + heap_bytes(made.parts);
  for (const auto& [file, why] : view.kept) bytes += heap_bytes(why);
  return bytes;
}

}  // namespace

Result<std::shared_ptr<const VersionTree>> VersionTree::build(std::shared_ptr<const Manifest> manifest) {
  return TreeBuilder(std::move(manifest)).build();
}

std::span<const std::uint32_t> VersionTree::children(std::uint32_t dir) const {
  auto [begin, end] = child_of_[dir];
  return std::span(child_list_).subspan(begin, end - begin);
}

std::optional<std::uint32_t> VersionTree::lookup(std::uint32_t dir, std::string_view name) const {
  auto entries = children(dir);
  auto it =
      std::ranges::lower_bound(entries, name, {}, [this](std::uint32_t i) { return std::string_view(node(i).name); });
  if (it == entries.end() || node(*it).name != name) return std::nullopt;
  return *it;
}

std::optional<std::uint32_t> VersionTree::vertex_of(std::uint32_t layer) const {
  for (const TensorRef& ref : layers_[layer].direct)
    if (std::uint32_t vertex = vertex_of_tensor_[tensor_ordinal(ref.file, ref.tensor)]; vertex != kNoVertex)
      return vertex;
  return std::nullopt;
}

const std::vector<Digest>& VersionTree::vertex_ids() const {
  std::call_once(ids_made_, [this] { ids_ = weft::vertex_ids(graph_of(*manifest_)); });
  return ids_;
}

std::size_t VersionTree::memory_bytes() const {
  std::size_t bytes = sizeof(VersionTree) + sizeof(Manifest) + heap_bytes(*manifest_) + heap_bytes(nodes_) +
                      heap_bytes(child_list_) + heap_bytes(child_of_) + heap_bytes(layers_) +
                      heap_bytes(node_of_file_) + heap_bytes(view_) + heap_bytes(first_tensor_) +
                      heap_bytes(vertex_of_tensor_) + manifest_->architecture.layers.size() * sizeof(Digest);
  for (const Node& node : nodes_) bytes += heap_bytes(node.name);
  for (const Layer& layer : layers_)
    bytes += heap_bytes(layer.name) + heap_bytes(layer.direct) + heap_bytes(layer.subtree);
  return bytes;
}

}  // namespace weft
