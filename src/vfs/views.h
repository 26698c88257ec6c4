// Tensor views: .npy files, one inode for each (content, element type, shape), whatever version shows them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reading/prefetch.h"
#include "weft/manifest.h"
#include "weft/store.h"
#include "weft/vfs.h"

namespace weft {

ViewKey view_key(const File& file, const Tensor& tensor);
std::uint64_t view_size(const ViewKey& key);
// `row` is of kind view.
Attr view_attr(const InodeRow& row);
std::string view_head(const ViewKey& key);  // what comes before the tensor's bytes
std::string view_where(const InodeRow& row);
// Where somebody reads on in it, `prefetcher` does, which outlives the file.
Result<std::shared_ptr<OpenFile>> open_view(Store& store, const InodeRow& row, Prefetcher& prefetcher);
// "user.weft.dtype", ".shape", ".hash"
std::vector<std::pair<std::string, std::string>> view_xattrs(const InodeRow& row);

}  // namespace weft
