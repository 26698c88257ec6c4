// Opens files below a version, whose bytes are local or remote.
#include <algorithm>
#include <map>
#include <optional>

#include "reading/gathered_file.h"
#include "reading/open_file.h"
#include "reading/record_file.h"
#include "vfs/versions.h"

namespace weft {
namespace {

// The .safetensors of a layer's subtree: a rendered header, then stored blobs.
struct Container {
  std::string header;
  std::vector<ContentId> blobs;  // in order
  struct Origin {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
  };
  std::vector<Origin> origins;  // the place of each blob in a published file
};

Container make_container(const VersionTree& tree, std::uint32_t layer) {
  const auto tensors = container_tensors(tree, layer);
  Container out;
  out.header = safetensors_header(tree.manifest(), tensors);
  for (const TensorRef& ref : tensors) {
    const File& file = tree.manifest().files[ref.file];
    const Tensor& tensor = file.tensors[ref.tensor];
    if (tensor.extent == kNoExtent) continue;
    out.blobs.push_back(file.extents[tensor.extent].id);
    out.origins.push_back({ref.file, file.extents[tensor.extent].offset});
  }
  return out;
}

std::uint64_t container_size(const VersionTree& tree, std::uint32_t layer) {
  const Container container = make_container(tree, layer);
  std::uint64_t size = container.header.size();
  for (const ContentId& blob : container.blobs) size += blob.length;
  return size;
}

std::vector<std::uint64_t> tensor_offsets(const File& file) {
  std::vector<std::uint64_t> out;
  for (const Tensor& tensor : file.tensors)
    if (tensor.extent != kNoExtent) out.push_back(file.extents[tensor.extent].offset);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::uint64_t> blob_offsets(const Container& container) {
  std::vector<std::uint64_t> out;
  std::uint64_t offset = container.header.size();
  for (const ContentId& blob : container.blobs) {
    out.push_back(offset);
    offset += blob.length;
  }
  return out;
}

}  // namespace

std::uint64_t Versions::generated_size(const TreeNode& node) {
  auto& known = node.version->sizes[node.index];
  std::uint64_t size = known.load(std::memory_order_relaxed);
  if (size != 0) return size;
  const bool container = node.node().kind == NodeKind::layer_container;
  size = container ? container_size(*node.version->tree, node.node().layer)
                   : render_layer_json(*node.version->tree, node.node().layer).size();
  known.store(size, std::memory_order_relaxed);
  return size;
}

std::shared_ptr<const PublishedFile> Versions::published(const TreeNode& node) const {
  const std::uint64_t key = node.version->row.id << 32U | node.node().file;
  if (auto known = files_.find(key)) return known;
  auto file = std::make_shared<PublishedFile>();
  file->source = std::make_shared<const AssembledSource>(assembled_source(node.file(), node.where()));
  file->borders = tensor_offsets(node.file());
  const std::size_t bytes = sizeof *file + sizeof *file->source + file->source->blobs.capacity() * sizeof(ContentId) +
                            file->borders.capacity() * sizeof(std::uint64_t);
  files_.put(key, file, bytes);
  return file;
}

Result<std::optional<Digest>> Versions::sha256_of(const MountInode& inode) {
  WEFT_TRY(const TreeNode found, node(inode));
  return found.node().kind == NodeKind::file ? found.file().sha256 : std::nullopt;
}

bool Versions::assembled(const MountInode& inode) {
  const auto found = node(inode);
  return found.ok() && found->node().kind == NodeKind::file && assembly_.has(*published(*found)->source);
}

Result<std::shared_ptr<OpenFile>> Versions::open(const MountInode& inode) {
  WEFT_TRY(const TreeNode found, node(inode));
  return open_node(found);
}

Result<std::shared_ptr<OpenFile>> Versions::open_node(const TreeNode& node) {
  auto opened = open_here(node);
  if (opened.ok() || opened.error().code != Errc::absent || cold_.reads == nullptr) return opened;
  return open_absent(node);
}

Result<std::shared_ptr<OpenFile>> Versions::open_file(const TreeVersionPointer& version, std::uint32_t file) {
  if (version->manifest().files[file].role != FileRole::published)
    return hidden_files_.open(version->row, version->manifest(), file);
  return open_node({version, version->tree->node_of_file(file)});
}

Result<std::shared_ptr<OpenFile>> Versions::open_scattered(const TreeVersionPointer& version, const Tensor& tensor) {
  const VersionTree& tree = *version->tree;
  std::map<std::uint32_t, std::shared_ptr<OpenFile>> files;
  GatheredTensor gathered;
  gathered.head = npy_header(tensor.dtype, tensor.shape, tensor.descr);
  gathered.shape = tensor.shape;
  gathered.strides = tensor.strides;
  gathered.element_bytes = dtype_info(tensor.dtype)->block_bytes;
  if (!tensor.grid.empty()) {
    WEFT_TRY(gathered.grid, Grid::of(tensor.dtype, tensor.shape, tensor.grid));
  }
  for (const TensorRun& run : tensor.runs) {
    std::shared_ptr<OpenFile>& file = files[run.file];
    if (!file) {
      WEFT_TRY(file, open_file(version, run.file));
    }
    const std::uint64_t at = tree.manifest().files[run.file].extents[run.extent].offset + run.offset;
    gathered.add(file, {at, run.length});
  }
  return open_gathered(std::move(gathered));
}

Result<std::shared_ptr<OpenFile>> Versions::open_absent(const TreeNode& node) {
  const VersionId version = node.version->row.id;
  const Node& n = node.node();
  std::vector<ColdBlob> blobs;
  if (n.kind == NodeKind::file) {
    for (const Extent& extent : node.file().extents) blobs.push_back({extent.id, {version, n.file, extent.offset}});
    return open_cold(store_, cold_, node.where(), "", blobs,
                     node.file().tensors.empty() ? ReadFor::anything : ReadFor::tensors);
  }
  Container container = make_container(*node.version->tree, n.layer);
  for (std::size_t i = 0; i < container.blobs.size(); ++i)
    blobs.push_back({container.blobs[i], {version, container.origins[i].file, container.origins[i].offset}});
  return open_cold(store_, cold_, node.where(), std::move(container.header), blobs);
}

Result<std::shared_ptr<OpenFile>> Versions::open_published(const TreeNode& node) {
  WEFT_TRY(auto file, assembly_.open(*published(node), {&places_, node.ino()}, &prefetcher_));
  if (!by_record_ || node.file().format != kLmdbFormat || !reads_by_record(*file)) return file;
  // If its table cannot be read, the file is scanned for records.
  const TreeVersion& version = *node.version;
  auto rows = version.dataset ? rows_of(version.manifest(), node.node().file, version.dataset->tables)
                              : std::optional<RecordRows>();
  return open_by_record(std::move(file), rows.ok() ? *std::move(rows) : std::nullopt);
}

Result<std::shared_ptr<OpenFile>> Versions::open_here(const TreeNode& node) {
  const Node& n = node.node();
  switch (n.kind) {
    case NodeKind::file:
      return open_published(node);
    case NodeKind::layer_container: {
      Container container = make_container(*node.version->tree, n.layer);
      ReadAhead ahead{&prefetcher_, blob_offsets(container)};
      return open_blobs(store_, node.where(), std::move(container.header), container.blobs, ahead,
                        {&places_, node.ino()});
    }
    case NodeKind::layer_json:
      return open_text(render_layer_json(*node.version->tree, n.layer));
    case NodeKind::tensor_view:
      return Error{Errc::internal, node.where() + ": a view has an inode of its own"};
    case NodeKind::dir:
      break;
  }
  return Error{Errc::is_dir, node.where() + ": a directory"};
}

}  // namespace weft
