#include "vfs/views.h"

#include <fmt/core.h>

#include <span>

#include "reading/open_file.h"
#include "weft/dtype.h"
#include "weft/tree.h"

namespace weft {

std::string view_head(const ViewKey& key) {
  return npy_header(key.dtype, key.shape, key.descr);
}

std::string view_where(const InodeRow& row) {
  return fmt::format("tensor view {}", row.base);
}

ViewKey view_key(const File& file, const Tensor& tensor) {
  const ContentId content = tensor.extent == kNoExtent ? ContentId{} : file.extents[tensor.extent].id;
  return {content, tensor.dtype, tensor.shape, tensor.descr};
}

std::uint64_t view_size(const ViewKey& key) {
  return view_head(key).size() + key.content.length;
}

Attr view_attr(const InodeRow& row) {
  Attr attr;
  attr.ino = row.base;
  attr.size = view_size(row.view);
  attr.blocks = 1;
  attr.nlink = row.view_links;
  attr.mtime_ns = row.view_time_ns;
  attr.lasting_name = true;
  attr.told = true;
  return attr;
}

Result<std::shared_ptr<OpenFile>> open_view(Store& store, const InodeRow& row, Prefetcher& prefetcher) {
  const ContentId& content = row.view.content;
  const std::span<const ContentId> blobs(&content, content.length == 0 ? 0 : 1);
  return open_blobs(store, view_where(row), view_head(row.view), blobs, {&prefetcher, {}, true});
}

std::vector<std::pair<std::string, std::string>> view_xattrs(const InodeRow& row) {
  const ViewKey& key = row.view;
  const DTypeInfo* info = dtype_info(key.dtype);
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("user.weft.dtype", info == nullptr ? key.descr : std::string(info->name));
  out.emplace_back("user.weft.shape", shape_text(key.shape));
  if (key.content.length > 0) out.emplace_back("user.weft.hash", to_hex(key.content.root));
  return out;
}

}  // namespace weft
