#include "ops.h"

namespace weft {

Status op_lookup(Server& server, fuse_req_t request, fuse_ino_t parent, const char* name) {
  const auto found = server.vfs.lookup(parent, name);
  fuse_entry_param entry{};
  if (found.ok()) {
    entry = to_entry(*found, server.options);
    entry.ino = choose_node(server, *found);
  } else {
    if (found.error().code != Errc::not_found) return found.error();
    const auto dir = server.vfs.getattr(parent);
    if (!dir.ok() || !dir->lasting_entries) return found.error();
    entry = absent_entry();
  }
  fuse_reply_entry(request, &entry);
  return {};
}

}  // namespace weft
