#include <cerrno>

#include "fuse/ops/ops.h"

namespace weft {
namespace {

// Replies to either call: size 0 asks for the length, and too small a buffer gets ERANGE.
void reply_sized(fuse_req_t request, std::string_view value, std::size_t size) {
  if (size == 0)
    fuse_reply_xattr(request, value.size());
  else if (size < value.size())
    fuse_reply_err(request, ERANGE);
  else
    fuse_reply_buf(request, value.data(), value.size());
}

}  // namespace

// Disabled by default: the kernel remembers ENOSYS and does not ask again, which saves `ls -l` a request per file.
Status op_getxattr(Server& server, fuse_req_t request, fuse_ino_t node, const char* name, size_t size) {
  if (!server.options.xattr) {
    fuse_reply_err(request, ENOSYS);
    return {};
  }
  WEFT_TRY(const auto attributes, server.vfs.xattrs(ino_of(node)));
  for (const auto& [key, value] : attributes) {
    if (key != name) continue;
    reply_sized(request, value, size);
    return {};
  }
  fuse_reply_err(request, ENODATA);
  return {};
}

Status op_listxattr(Server& server, fuse_req_t request, fuse_ino_t node, size_t size) {
  if (!server.options.xattr) {
    fuse_reply_err(request, ENOSYS);
    return {};
  }
  WEFT_TRY(const auto attributes, server.vfs.xattrs(ino_of(node)));
  std::string names;
  for (const auto& attribute : attributes) names.append(attribute.first).push_back('\0');
  reply_sized(request, names, size);
  return {};
}

}  // namespace weft
