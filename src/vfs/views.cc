#include "vfs/views.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "reading/open_file.h"
#include "weft/dtype.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

std::string head_of(const ViewKey& key) {
  return npy_header(key.dtype, key.shape, key.descr);
}

std::string where(const InodeRow& row) {
  return fmt::format("tensor view {}", row.base);
}

}  // namespace

Result<Attr> Views::attr(const MountInode& inode) {
  const InodeRow& row = inode.row;
  Attr attr;
  attr.ino = row.base;
  attr.size = head_of(row.view).size() + row.view.content.length;
  attr.blocks = 1;
  attr.nlink = row.view_links;
  attr.mtime_ns = row.view_time_ns;
  attr.lasting_name = true;
  attr.counted = true;
  return attr;
}

Result<std::shared_ptr<OpenFile>> Views::open(const MountInode& inode) {
  auto opened = open_local(inode.row);
  if (opened.ok()) return opened;
  if (opened.error().code == Errc::absent) return open_absent(inode.row);
  if (opened.error().code == Errc::not_found) return open_scattered(inode.row);
  return opened;
}

// No blob has the bytes of a scattered tensor: the manifest of a version with this tensor has their places.
Result<std::shared_ptr<OpenFile>> Views::open_scattered(const InodeRow& row) {
  WEFT_TRY(const VersionId keeper, store_.keeper(row));
  WEFT_TRY(const auto version, versions_.load(keeper, 0));
  const Manifest& manifest = version->tree->manifest();
  for (const File& file : manifest.files)
    for (const Tensor& tensor : file.tensors)
      if (tensor.scattered() && tensor.dtype == row.view.dtype && tensor.shape == row.view.shape &&
          tensor.descr == row.view.descr && tensor_content(manifest, file, tensor) == row.view.content)
        return versions_.open_scattered(version, tensor);
  return Error{Errc::corrupt, where(row) + ": its version has no such tensor (run `weft fsck --rebuild`)"};
}

Result<std::shared_ptr<OpenFile>> Views::open_local(const InodeRow& row) {
  const ContentId& content = row.view.content;
  const std::span<const ContentId> blobs(&content, content.length == 0 ? 0 : 1);
  return open_blobs(store_, where(row), head_of(row.view), blobs, {&prefetcher_, {}, true});
}

// Many versions may show the view. The manifest of the version that owns its bytes has their place in a published file.
Result<std::shared_ptr<OpenFile>> Views::open_absent(const InodeRow& row) {
  const ContentId& id = row.view.content;
  std::optional<std::pair<VersionId, std::uint32_t>> owner;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(owner, snapshot->owner(id));
  }
  if (cold_.reads == nullptr || !owner) return Error{Errc::absent, where(row) + ": its bytes are not on this node"};
  WEFT_TRY(const auto version, versions_.load(owner->first, 0));
  const auto& extents = version->tree->manifest().files[owner->second].extents;
  const auto extent = std::ranges::find(extents, id, &Extent::id);
  if (extent == extents.end()) return Error{Errc::corrupt, where(row) + ": its holder has no such bytes"};
  const ColdBlob blob{id, {owner->first, owner->second, extent->offset}};
  return open_absent_blob(cold_, where(row), head_of(row.view), blob);
}

Result<FileVersions> Views::versions(const MountInode& inode) {
  WEFT_TRY(const VersionId keeper, store_.keeper(inode.row));
  return FileVersions{keeper, 0};
}

Result<Xattrs> Views::xattrs(const MountInode& inode) {
  const ViewKey& key = inode.row.view;
  const DTypeInfo* info = dtype_info(key.dtype);
  Xattrs out;
  out.emplace_back("user.weft.dtype", info == nullptr ? key.descr : std::string(info->name));
  out.emplace_back("user.weft.shape", shape_text(key.shape));
  if (key.content.length > 0) out.emplace_back("user.weft.hash", to_hex(key.content.root));
  return out;
}

}  // namespace weft
