// Opening what lies below a version, here or not.
#include <algorithm>

#include "reading/open_file.h"
#include "vfs/container.h"
#include "vfs/version.h"
#include "vfs/views.h"

namespace weft {
namespace {

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

bool Versions::assembled(const TreeNode& node) const {
  return node.node().kind == NodeKind::file && assembly_.has(*published(node)->source);
}

Result<std::shared_ptr<OpenFile>> Versions::open(const TreeNode& node) {
  auto opened = open_here(node);
  if (opened.ok() || opened.error().code != Errc::absent || cold_.reads == nullptr) return opened;
  return open_absent(node);
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

// By way of the first version that has these bytes: the view may be of many.
Result<std::shared_ptr<OpenFile>> Versions::open_absent_view(
    const InodeRow& row, const std::optional<std::pair<VersionId, std::uint32_t>>& owner) {
  const ContentId& id = row.view.content;
  if (cold_.reads == nullptr || !owner)
    return Error{Errc::absent, view_where(row) + ": its bytes are not on this node"};
  WEFT_TRY(const auto version, load(owner->first));
  const auto& extents = version->tree->manifest().files[owner->second].extents;
  const auto extent = std::ranges::find(extents, id, &Extent::id);
  if (extent == extents.end()) return Error{Errc::corrupt, view_where(row) + ": its holder has no such bytes"};
  const ColdBlob blob{id, {owner->first, owner->second, extent->offset}};
  return open_absent_blob(cold_, view_where(row), view_head(row.view), blob);
}

Result<std::shared_ptr<OpenFile>> Versions::open_here(const TreeNode& node) {
  const Node& n = node.node();
  switch (n.kind) {
    case NodeKind::file:
      return assembly_.open(*published(node), {&places_, node.ino()}, &prefetcher_);
    case NodeKind::layer_container: {
      Container container = make_container(*node.version->tree, n.layer);
      ReadAhead ahead{&prefetcher_, blob_offsets(container)};
      return open_blobs(store_, node.where(), std::move(container.header), container.blobs, ahead,
                        {&places_, node.ino()});
    }
    case NodeKind::info_json:
    case NodeKind::layer_json:
      return open_text(node.render());
    case NodeKind::tensor_view:
      return Error{Errc::internal, node.where() + ": a view has an inode of its own"};
    case NodeKind::dir:
    case NodeKind::lineage_dir:
      break;
  }
  return Error{Errc::is_dir, node.where() + ": a directory"};
}

}  // namespace weft
