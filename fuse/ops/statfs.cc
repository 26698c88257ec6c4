#include "base/limits.h"
#include "fuse/ops/ops.h"

namespace weft {

Status op_statfs(Server& server, fuse_req_t request, fuse_ino_t) {
  WEFT_TRY(const StatFs facts, server.vfs.statfs());
  struct statvfs out {};
  out.f_bsize = facts.block_size;
  out.f_frsize = facts.block_size;
  out.f_blocks = facts.blocks;
  out.f_bfree = facts.blocks_free;
  out.f_bavail = facts.blocks_available;
  out.f_files = facts.files;
  out.f_ffree = facts.files_free;
  out.f_favail = facts.files_free;
  out.f_namemax = limits::kNameMax;
  fuse_reply_statfs(request, &out);
  return {};
}

}  // namespace weft
