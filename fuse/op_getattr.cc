#include "ops.h"

namespace weft {
namespace {

// A file that is open outlives its version: it answers as it was opened once the store has forgotten it.
Result<Attr> attr_of(Server& server, Ino ino) {
  auto attr = server.vfs.getattr(ino);
  if (attr.ok() || attr.error().code != Errc::not_found) return attr;
  const auto kept = server.open_files.attr(ino);
  return kept ? Result<Attr>(*kept) : attr;
}

}  // namespace

Status op_getattr(Server& server, fuse_req_t request, fuse_ino_t ino, fuse_file_info*) {
  WEFT_TRY(const Attr attr, attr_of(server, ino));
  const struct stat out = to_stat(attr, server.options);
  fuse_reply_attr(request, &out, attr_timeout_s(attr));
  return {};
}

}  // namespace weft
