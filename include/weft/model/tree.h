// The trees that users see of one version (model/tree.cc): its published files, its layers, its tensors, and the view
// of it as safetensors. A pure, deterministic function of the manifest. Node i of a version has the inode number
// (version's ino_base + i). Tensor views are the exception: all views of equal (content, dtype, shape) share one inode.
// Node numbers never change, because inode numbers hold them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/model/manifest.h"
#include "weft/model/safetensors_view.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// A change of this numbering needs a new format of stores and registries, because they store the number of nodes of a
// version. Nodes are numbered in this order:
//   - kPublishedRoot, kLayersRoot, kTensorsRoot, kSafetensorsRoot: the version's directories in models/, layers/,
//     tensors/ and safetensors/;
//   - published directories and files, in path order, a directory before the first entry below it;
//   - below tensors/: the plain views, then for each file that is set aside its @<file>/ and the views in it;
//   - below layers/: layer.json, the plain layers (directory, layer.json, container if any) in the order of the first
//     tensor below each, outer before inner, then the plain views. Then the same for each file that is set aside, with
//     @<file>/ as its root;
//   - below safetensors/: directories, published files and made files (weft/model/safetensors_view.h), in path order, a
//     directory before the first entry below it. A data set has none of these.
// Views, files and tensors are in manifest order. A file is set aside if an earlier file that is not set aside has a
// tensor of the same name. A layer has a container if safetensors can hold a tensor below it. The root of layers/ and
// @<file>/ have no container.
inline constexpr std::uint32_t kPublishedRoot = 0;
inline constexpr std::uint32_t kLayersRoot = 1;
inline constexpr std::uint32_t kTensorsRoot = 2;
inline constexpr std::uint32_t kSafetensorsRoot = 3;
inline constexpr std::uint32_t kRootCount = 4;

enum class NodeKind : std::uint8_t {
  dir,              // published or generated directory
  file,             // a published file: Node::file
  tensor_view,      // <name>.npy: Node::file, Node::tensor. Appears in tensors/ and in layers/
  layer_json,       // rendered: Node::layer
  layer_container,  // <layer>.safetensors of a layer's subtree, composed: Node::layer
  made_container,   // a container of safetensors/, composed: Node::file is an index into SafetensorsView::made
  made_text,        // another made file of safetensors/, rendered: Node::file as above
  view_file,        // a published file in safetensors/: Node::file
};

// True for a published file in models/ or in safetensors/.
constexpr bool is_published(NodeKind kind) {
  return kind == NodeKind::file || kind == NodeKind::view_file;
}

struct Node {
  NodeKind kind = NodeKind::dir;
  std::uint32_t parent = 0;  // a root is its own parent
  std::string name;
  std::uint32_t file = 0;
  std::uint32_t tensor = 0;  // index within the file
  std::uint32_t layer = 0;   // index into VersionTree::layers()
};

// A directory of layers/: its dotted prefix, the tensors directly in it, and all tensors below it, in manifest order.
struct Layer {
  std::string name;       // "encoder.layer.0.attention", unescaped; "" for layers/ and layers/@<file>/
  std::uint32_t dir = 0;  // the node of its directory
  std::vector<TensorRef> direct;
  std::vector<TensorRef> subtree;
};

// Immutable after build; any thread.
class VersionTree {
 public:
  // Errc::invalid: a tensor's escaped name and its suffix do not fit into NAME_MAX, a file has two tensors of one name,
  // or names are so deep that the tree would be out of proportion to the manifest (limits::kTreeEntriesPerTensor).
  // Content ids are ignored.
  static Result<std::shared_ptr<const VersionTree>> build(std::shared_ptr<const Manifest> manifest);

  // Returns how many nodes build() would make, without making them. Fails as build() does.
  static Result<std::uint64_t> count(const Manifest& manifest);

  const Manifest& manifest() const { return *manifest_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const Node& node(std::uint32_t index) const { return nodes_[index]; }  // index < size()
  std::span<const std::uint32_t> children(std::uint32_t dir) const;      // sorted by name, bytewise
  std::optional<std::uint32_t> lookup(std::uint32_t dir, std::string_view name) const;
  std::uint32_t node_of_file(std::uint32_t file) const { return node_of_file_[file]; }
  const SafetensorsView& view() const { return view_; }
  std::span<const Layer> layers() const { return layers_; }
  // Returns the layer of the manifest's architecture with tensors directly in this one; nothing for most layers that
  // only contain others.
  std::optional<std::uint32_t> vertex_of(std::uint32_t layer) const;
  const std::vector<Digest>& vertex_ids() const;  // of the architecture; computed at the first call
  // Returns the position of a tensor among all tensors of the manifest, in (file, tensor) order: the index into
  // LocalRow::view_inos.
  std::uint32_t tensor_ordinal(std::uint32_t file, std::uint32_t tensor) const { return first_tensor_[file] + tensor; }
  std::size_t memory_bytes() const;  // memory of this and its manifest, about

 private:
  friend class TreeBuilder;
  static constexpr std::uint32_t kNoVertex = 0xffffffffU;
  std::shared_ptr<const Manifest> manifest_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> child_list_;                          // children of all directories, concatenated
  std::vector<std::pair<std::uint32_t, std::uint32_t>> child_of_;  // per node: begin, end in child_list_
  std::vector<Layer> layers_;
  std::vector<std::uint32_t> node_of_file_;
  std::vector<std::uint32_t> first_tensor_;
  std::vector<std::uint32_t> vertex_of_tensor_;  // by ordinal; kNoVertex: none
  mutable std::once_flag ids_made_;
  mutable std::vector<Digest> ids_;
  SafetensorsView view_;
};

// Returns the .npy header of a view (version 1.0 or 2.0, padded to 64 bytes), which precedes the tensor's raw bytes. A
// type that numpy lacks becomes |V<block bytes>, with the shape in blocks. If the last dimension is not whole blocks,
// the shape is one dimension of |V1 bytes.
std::string npy_header(DType dtype, std::span<const std::uint64_t> shape, std::string_view descr);

// Returns the tensors of a layer's container, in the order of their bytes: those of the subtree that safetensors can
// hold, larger elements first (like the reference serializer, so that every tensor is aligned to its element), else in
// manifest order. The container is the safetensors_header() of these tensors, then their stored bytes.
std::vector<TensorRef> container_tensors(const VersionTree& tree, std::uint32_t layer);
// Returns a safetensors header (8-byte length included, padded to 8 bytes) for these tensors in this order, with full
// names. safetensors must be able to hold all of them.
std::string safetensors_header(const Manifest& manifest, std::span<const TensorRef> tensors);
bool safetensors_can_hold(DType dtype);
bool safetensors_can_hold(const Tensor& tensor);  // its dtype; one extent, in C order, little-endian (no descr)

// Reversible escapes for names of tensors and layers (weft.7): '%', '/', control characters (NUL and DEL too) and a
// leading '@' become %XX, the empty name "%-", "." and ".." %2E and %2E%2E. Nothing else changes.
std::string escape_component(std::string_view raw);

// Facts about a data set that are in its tables and not in its manifest.
struct ContainerFacts {
  const File* file = nullptr;            // in the manifest
  std::optional<std::uint64_t> records;  // none: it was not read as a container
  std::uint64_t left_out = 0;            // members that are not records
  std::string why_none;                  // the reason if there are no records
};
struct DatasetFacts {
  std::uint64_t small_files = 0;
  std::vector<ContainerFacts> containers;
};
// `dataset` has the facts of a data set, and is empty for a model. Neither small files nor records are listed.
std::string render_info_json(const VersionRow& version, const Manifest& manifest, const DatasetFacts& dataset = {});
std::string render_layer_json(const VersionTree& tree, std::uint32_t layer);
std::string render_readme();

}  // namespace weft
