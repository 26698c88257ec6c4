#include <algorithm>

#include "base/limits.h"
#include "fuse/ops/draft_ops.h"
#include "fuse/ops/ops.h"

namespace weft {
namespace {

Result<struct statvfs> facts_of(Server& server) {
  WEFT_TRY(struct statvfs out, server.vfs.statfs());
  out.f_bsize = out.f_frsize;
  out.f_namemax = limits::kNameMax;
  return out;
}

}  // namespace

Status op_statfs(Server& server, fuse_req_t request, fuse_ino_t) {
  WEFT_TRY(const struct statvfs out, facts_of(server));
  fuse_reply_statfs(request, &out);
  return {};
}

// Shows the space that drafts_max leaves to drafts, or that of the disk if it is less.
Status draft_statfs(Server& server, fuse_req_t request, fuse_ino_t) {
  WEFT_TRY(struct statvfs out, facts_of(server));
  const std::uint64_t most = server.draft_space->bytes_max() / out.f_frsize;
  const std::uint64_t taken = server.draft_space->bytes() / out.f_frsize;
  const std::uint64_t left = most - std::min(most, taken);
  out.f_blocks = std::min(out.f_blocks, most);
  out.f_bfree = std::min(out.f_bfree, left);
  out.f_bavail = std::min(out.f_bavail, left);
  fuse_reply_statfs(request, &out);
  return {};
}

}  // namespace weft
