#include "fuse/ops/ops.h"

namespace weft {
namespace {

// Returns the attributes of a node. An open file whose version the store has forgotten keeps those of its open.
Result<Attr> attr_of(Server& server, NodeId node) {
  auto attr = server.vfs.getattr(ino_of(node));
  if (attr.ok() || attr.error().code != Errc::not_found) return attr;
  const auto kept = server.open_files.attr(node);
  return kept ? Result<Attr>(*kept) : attr;
}

}  // namespace

Status op_getattr(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info*) {
  WEFT_TRY(const Attr attr, attr_of(server, node));
  const struct stat out = to_stat(attr, server.options);
  fuse_reply_attr(request, &out, attr_timeout_s(attr, server.options));
  return {};
}

}  // namespace weft
