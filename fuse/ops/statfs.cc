#include "base/limits.h"
#include "fuse/ops/ops.h"

namespace weft {

Status op_statfs(Server& server, fuse_req_t request, fuse_ino_t) {
  WEFT_TRY(struct statvfs out, server.vfs.statfs());
  out.f_bsize = out.f_frsize;
  out.f_namemax = limits::kNameMax;
  fuse_reply_statfs(request, &out);
  return {};
}

}  // namespace weft
