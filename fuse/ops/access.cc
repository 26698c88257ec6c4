#include <unistd.h>

#include <cerrno>

#include "fuse/ops/ops.h"
#include "fuse/state/attr.h"

namespace weft {

// Called only if the kernel does not check modes (MountOptions::kernel_checks_modes()): everybody may read everything
// then.
Status op_access(Server& server, fuse_req_t request, fuse_ino_t node, int mask) {
  if ((mask & W_OK) != 0) {
    fuse_reply_err(request, EROFS);
    return {};
  }
  bool refused = false;
  if ((mask & X_OK) != 0) {
    WEFT_TRY(const Attr attr, server.vfs.getattr(ino_of(node)));
    refused = attr.type == FileType::regular && (mode_of(attr, server.options) & 0111U) == 0;
  }
  fuse_reply_err(request, refused ? EACCES : 0);
  return {};
}

}  // namespace weft
