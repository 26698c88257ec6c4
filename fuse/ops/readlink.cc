#include "fuse/ops/ops.h"

namespace weft {

Status op_readlink(Server& server, fuse_req_t request, fuse_ino_t ino) {
  WEFT_TRY(const std::string target, server.vfs.readlink(ino));
  fuse_reply_readlink(request, target.c_str());
  return {};
}

}  // namespace weft
