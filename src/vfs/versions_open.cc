// Opens files below a version, whose bytes are local or remote.
#include <algorithm>
#include <optional>

#include "reading/open_file.h"
#include "reading/record_file.h"
#include "vfs/versions.h"

namespace weft {
namespace {

std::vector<std::uint64_t> tensor_offsets(const File& file) {
  std::vector<std::uint64_t> out;
  for (const Tensor& tensor : file.tensors)
    if (tensor.extent != kNoExtent) out.push_back(file.extents[tensor.extent].offset);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

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
  return is_published(found.node().kind) ? found.file().sha256 : std::nullopt;
}

bool Versions::assembled(const MountInode& inode) {
  const auto found = node(inode);
  return found.ok() && is_published(found->node().kind) && assembly_.has(*published(*found)->source);
}

Result<std::shared_ptr<OpenFile>> Versions::open(const MountInode& inode) {
  WEFT_TRY(const TreeNode found, node(inode));
  return open_node(found);
}

Result<std::shared_ptr<OpenFile>> Versions::open_node(const TreeNode& node) {
  if (GeneratedFiles::is_generated(node.node().kind)) return generated_.open(node);
  auto opened = open_here(node);
  if (opened.ok() || opened.error().code != Errc::absent || cold_.reads == nullptr) return opened;
  return open_absent(node);
}

Result<std::shared_ptr<OpenFile>> Versions::open_file(const TreeVersionPointer& version, std::uint32_t file) {
  if (version->manifest().files[file].role != FileRole::published)
    return hidden_files_.open(version->row, version->manifest(), file);
  return open_node({version, version->tree->node_of_file(file)});
}

Result<std::shared_ptr<OpenFile>> Versions::open_absent(const TreeNode& node) {
  std::vector<ColdBlob> blobs;
  for (const Extent& extent : node.file().extents)
    blobs.push_back({extent.id, {node.version->row.id, node.node().file, extent.offset}});
  return open_cold(store_, cold_, node.where(), "", blobs,
                   node.file().tensors.empty() ? ReadFor::anything : ReadFor::tensors);
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
    case NodeKind::view_file:
      return open_published(node);
    case NodeKind::layer_json:
    case NodeKind::layer_container:
    case NodeKind::made_container:
    case NodeKind::made_text:
      return generated_.open(node);
    case NodeKind::tensor_view:
      return Error{Errc::internal, node.where() + ": a view has an inode of its own"};
    case NodeKind::dir:
      break;
  }
  return Error{Errc::is_dir, node.where() + ": a directory"};
}

}  // namespace weft
