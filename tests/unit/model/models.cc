#include "unit/model/models.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>

#include "base/text.h"

namespace weft::testing {
namespace {

std::uint64_t bytes_of(const Spec& spec) {
  return spec.dtype == DType::npy_other ? 24 : tensor_bytes(spec.dtype, spec.shape).value();
}

void append_extent(File& file, std::uint64_t length) {
  std::uint64_t seed = std::hash<std::string>{}(file.path) + file.extents.size();
  file.extents.push_back({file.size, content(length, seed)});
  file.size += length;
}

void append_layer(std::vector<Spec>& specs, const std::string& prefix, Shape shape) {
  std::uint64_t rows = shape[0];
  specs.push_back({prefix + ".weight", DType::f32, std::move(shape)});
  specs.push_back({prefix + ".bias", DType::f32, {rows}});
}

constexpr std::string_view kRootNames[kRootCount] = {"models", "layers", "tensors", "safetensors"};

std::optional<std::uint32_t> find(const VersionTree& tree, std::string_view path) {
  const auto names = split(path, '/');
  const auto root = std::ranges::find(kRootNames, names.front());
  if (root == std::end(kRootNames)) return std::nullopt;
  auto node = static_cast<std::uint32_t>(root - std::begin(kRootNames));
  for (std::string_view name : std::span(names).subspan(1)) {
    auto child = tree.lookup(node, name);
    if (!child) return std::nullopt;
    node = *child;
  }
  return node;
}

}  // namespace

ContentId content(std::uint64_t length, std::uint64_t seed) {
  ContentId id{length, {}};
  for (std::size_t i = 0; i < id.root.bytes.size(); ++i)
    id.root.bytes[i] = static_cast<std::uint8_t>((seed >> (i % 8 * 8)) + i);
  return id;
}

File file_of(std::string path, const std::vector<Spec>& tensors, std::string format) {
  File file;
  file.path = std::move(path);
  file.format = std::move(format);
  append_extent(file, 64);
  for (const Spec& spec : tensors) {
    Tensor tensor{spec.name, spec.dtype, spec.shape, kNoExtent, spec.descr};
    if (std::uint64_t bytes = bytes_of(spec); bytes > 0) {
      tensor.extent = static_cast<std::uint32_t>(file.extents.size());
      append_extent(file, bytes);
    }
    file.tensors.push_back(std::move(tensor));
  }
  return file;
}

File opaque(std::string path, std::uint64_t size) {
  File file;
  file.path = std::move(path);
  if (size > 0) append_extent(file, size);
  return file;
}

File named(std::string path, std::initializer_list<const char*> tensors) {
  std::vector<Spec> specs;
  for (const char* name : tensors) specs.push_back({name});
  return file_of(std::move(path), specs);
}

Manifest bert(unsigned layers) {
  std::vector<Spec> specs;
  specs.push_back({"embeddings.word_embeddings.weight", DType::f32, {100, 8}});
  append_layer(specs, "embeddings.LayerNorm", {8});
  for (unsigned i = 0; i < layers; ++i) {
    std::string layer = "encoder.layer." + std::to_string(i) + ".";
    for (const char* name : {"query", "key", "value"}) append_layer(specs, layer + "attention.self." + name, {8, 8});
    append_layer(specs, layer + "output.dense", {8, 32});
  }
  append_layer(specs, "pooler.dense", {8, 8});
  return {{opaque("config.json", 570), file_of("model.safetensors", specs)}};
}

std::shared_ptr<const VersionTree> tree_of(Manifest manifest) {
  const auto count = VersionTree::count(manifest);
  auto tree = VersionTree::build(std::make_shared<const Manifest>(std::move(manifest)));
  if (!tree.ok()) throw std::runtime_error(tree.error().message);
  if (!count.ok() || *count != tree.value()->size()) throw std::runtime_error("count() and build() differ");
  return std::move(tree).value();
}

std::vector<std::uint32_t> entries_of(const VersionTree& tree) {
  std::vector<std::uint32_t> entries(tensor_count(tree.manifest()));
  for (std::uint32_t i = 0; i < tree.size(); ++i)
    if (const Node& node = tree.node(i); node.kind == NodeKind::tensor_view)
      ++entries[tree.tensor_ordinal(node.file, node.tensor)];
  return entries;
}

std::string path_of(const VersionTree& tree, std::uint32_t node) {
  if (node < kRootCount) return std::string(kRootNames[node]);
  return path_of(tree, tree.node(node).parent) + "/" + tree.node(node).name;
}

std::uint32_t at(const VersionTree& tree, std::string_view path) {
  auto node = find(tree, path);
  if (!node) throw std::runtime_error("not in the tree: " + std::string(path));
  return *node;
}

bool has(const VersionTree& tree, std::string_view path) {
  return find(tree, path).has_value();
}

}  // namespace weft::testing
