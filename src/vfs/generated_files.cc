// The generated files below a version: texts and containers.
#include <utility>
#include <vector>

#include "reading/gathered_file.h"
#include "reading/joined_file.h"
#include "reading/open_file.h"
#include "vfs/versions.h"
#include "weft/dtype.h"
#include "weft/model/safetensors_view.h"
#include "weft/model/tree.h"

namespace weft {

// A rendered header, then the stored bytes of tensors.
struct GeneratedFiles::Container {
  std::size_t memory_bytes() const { return sizeof *this + header.capacity() + tensors.capacity() * sizeof(TensorRef); }

  std::string header;
  std::vector<TensorRef> tensors;
  std::uint64_t size = 0;  // in bytes, with the header
};

// Bytes in memory, then blobs that published files have at these places.
struct GeneratedFiles::Segment {
  bool empty() const { return head.empty() && blobs.empty(); }

  std::string head;
  std::vector<ColdBlob> blobs;
};

namespace {

std::vector<std::uint64_t> offsets_of(const std::vector<ColdBlob>& blobs, std::uint64_t offset) {
  std::vector<std::uint64_t> out;
  for (const ColdBlob& blob : blobs) {
    out.push_back(offset);
    offset += blob.id.length;
  }
  return out;
}

const ViewFile& made_file(const TreeNode& node) {
  return node.version->tree->view().made[node.node().file];
}

}  // namespace

GeneratedFiles::Container GeneratedFiles::make_container(const TreeNode& node) {
  const VersionTree& tree = *node.version->tree;
  if (node.node().kind == NodeKind::made_container) {
    ViewContainer view = view_container(tree.manifest(), made_file(node));
    return {std::move(view.header), std::move(view.tensors), view.size};
  }
  Container out{{}, container_tensors(tree, node.node().layer)};
  out.header = safetensors_header(tree.manifest(), out.tensors);
  out.size = out.header.size();
  for (const TensorRef& ref : out.tensors) {
    const File& file = tree.manifest().files[ref.file];
    out.size += stored_bytes(file, file.tensors[ref.tensor]);
  }
  return out;
}

std::shared_ptr<const GeneratedFiles::Container> GeneratedFiles::container_of(const TreeNode& node) {
  const Ino ino = node.ino();
  if (auto known = containers_.find(ino)) return known;
  auto made = std::make_shared<const Container>(make_container(node));
  containers_.put(ino, made, made->memory_bytes());
  return made;
}

std::string GeneratedFiles::text_of(const TreeNode& node) {
  const VersionTree& tree = *node.version->tree;
  if (node.node().kind == NodeKind::made_text) return render_view_text(tree.manifest(), tree.view(), made_file(node));
  return render_layer_json(tree, node.node().layer);
}

std::uint64_t GeneratedFiles::size(const TreeNode& node) {
  auto& known = node.version->sizes[node.index];
  std::uint64_t size = known.load(std::memory_order_relaxed);
  if (size != 0) return size;
  size = is_container(node.node().kind) ? container_of(node)->size : text_of(node).size();
  known.store(size, std::memory_order_relaxed);
  return size;
}

Result<std::shared_ptr<OpenFile>> GeneratedFiles::open(const TreeNode& node) {
  return is_container(node.node().kind) ? open_container(node) : open_text(text_of(node));
}

// A container without scattered tensors is one file of blobs. A scattered tensor is a file of its own, between two such
// files.
Result<std::shared_ptr<OpenFile>> GeneratedFiles::open_container(const TreeNode& node) {
  const Manifest& manifest = node.version->manifest();
  const std::shared_ptr<const Container> container = container_of(node);
  std::vector<std::shared_ptr<OpenFile>> parts;
  Sources sources;
  Segment segment{container->header, {}};
  for (const TensorRef& ref : container->tensors) {
    const File& file = manifest.files[ref.file];
    const Tensor& tensor = file.tensors[ref.tensor];
    if (tensor.extent != kNoExtent) {
      const Extent& extent = file.extents[tensor.extent];
      segment.blobs.push_back({extent.id, {node.version->row.id, ref.file, extent.offset}});
    }
    if (!tensor.scattered()) continue;
    if (!segment.empty()) {
      WEFT_TRY(parts.emplace_back(), open_segment(node, std::exchange(segment, {}), {}));
    }
    WEFT_TRY(parts.emplace_back(), gather(node.version, tensor, "", sources));
  }
  if (parts.empty()) return open_segment(node, std::move(segment), {&places_, node.ino()});
  if (!segment.empty()) {
    WEFT_TRY(parts.emplace_back(), open_segment(node, std::move(segment), {}));
  }
  return open_joined(std::move(parts));
}

Result<std::shared_ptr<OpenFile>> GeneratedFiles::open_segment(const TreeNode& node, Segment segment,
                                                               Remembered known) {
  std::vector<ContentId> blobs;
  for (const ColdBlob& blob : segment.blobs) blobs.push_back(blob.id);
  ReadAhead ahead{&prefetcher_, offsets_of(segment.blobs, segment.head.size())};
  auto opened = open_blobs(store_, node.where(), segment.head, blobs, ahead, known);
  if (opened.ok() || opened.error().code != Errc::absent || cold_.reads == nullptr) return opened;
  return open_cold(store_, cold_, node.where(), std::move(segment.head), segment.blobs);
}

Result<std::shared_ptr<OpenFile>> GeneratedFiles::open_scattered(const TreeVersionPointer& version,
                                                                 const Tensor& tensor) {
  Sources sources;
  return gather(version, tensor, npy_header(tensor.dtype, tensor.shape, tensor.descr), sources);
}

Result<std::shared_ptr<OpenFile>> GeneratedFiles::gather(const TreeVersionPointer& version, const Tensor& tensor,
                                                         std::string head, Sources& sources) {
  GatheredTensor gathered;
  gathered.head = std::move(head);
  gathered.shape = tensor.shape;
  gathered.strides = tensor.strides;
  gathered.element_bytes = dtype_info(tensor.dtype)->block_bytes;
  if (!tensor.grid.empty()) {
    WEFT_TRY(gathered.grid, Grid::of(tensor.dtype, tensor.shape, tensor.grid));
  }
  for (const TensorRun& run : tensor.runs) {
    std::shared_ptr<OpenFile>& file = sources[run.file];
    if (!file) {
      WEFT_TRY(file, files_.open_file(version, run.file));
    }
    const std::uint64_t at = version->manifest().files[run.file].extents[run.extent].offset + run.offset;
    gathered.add(file, {at, run.length});
  }
  return open_gathered(std::move(gathered));
}

}  // namespace weft
