#include <cerrno>
#include <string_view>

#include "base/limits.h"
#include "fuse/ops/announce.h"
#include "fuse/ops/draft_ops.h"
#include "fuse/ops/ops.h"

namespace weft {
namespace {

Status reply_absent(Server& server, fuse_req_t request, fuse_ino_t parent, const Error& error) {
  const auto dir = server.vfs.getattr(parent);
  if (!dir.ok() || !dir->lasting_entries) return error;
  const fuse_entry_param entry = absent_entry();
  fuse_reply_entry(request, &entry);
  return {};
}

}  // namespace

Status op_lookup(Server& server, fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (std::string_view(name).size() > limits::kNameMax) {  // the kernel passes up to 1,024 bytes
    fuse_reply_err(request, ENAMETOOLONG);
    return {};
  }
  if (server.drafts && parent == kRootIno && std::string_view(name) == "new") return draft_lookup_top(server, request);
  if (is_announcer(server, request)) {
    WEFT_TRY(const bool answered, announced_lookup(server, request, parent, name));
    if (answered) return {};
  }
  const auto found = server.vfs.lookup(ino_of(parent), name);
  if (!found.ok() && found.error().code == Errc::not_found) return reply_absent(server, request, parent, found.error());
  if (!found.ok()) return found.error();
  fuse_entry_param entry = to_entry(*found, server.options);
  entry.ino = choose_node(server, *found);
  fuse_reply_entry(request, &entry);
  return {};
}

}  // namespace weft
