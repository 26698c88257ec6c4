#include "fuse/ops/announce.h"

#include <cerrno>
#include <string>
#include <string_view>

#include "fuse/kernel/announcing.h"
#include "fuse/state/attr.h"
#include "fuse/state/node_id.h"

namespace weft {
namespace {

Error not_the_announcer() {
  return Error{Errc::read_only, "a published file"};
}

bool is_there(Server& server, fuse_ino_t dir, std::string_view name) {
  return server.vfs.lookup(ino_of(dir), name).ok();
}

// Replies with an inode that only the announcer sees, with the attributes of another one. The kernel does not cache it.
Status reply_stand_in(Server& server, fuse_req_t request, const Attr& attr) {
  fuse_entry_param entry = to_entry(attr, server.options);
  entry.ino = second_node(attr.ino);
  entry.entry_timeout = 0;
  entry.attr_timeout = 0;
  fuse_reply_entry(request, &entry);
  return {};
}

Status reply_link(Server& server, fuse_req_t request, fuse_ino_t dir) {
  WEFT_TRY(const Attr latest, server.vfs.lookup(ino_of(dir), "latest"));
  return reply_stand_in(server, request, latest);
}

Status reply_directory(Server& server, fuse_req_t request, fuse_ino_t dir) {
  WEFT_TRY(const Attr attr, server.vfs.getattr(ino_of(dir)));
  return reply_stand_in(server, request, attr);
}

// Replies with success if the change has happened, else with ENOENT: the announcement is obsolete.
Status reply_done(Server& server, fuse_req_t request, bool so) {
  if (!is_announcer(server, request)) return not_the_announcer();
  fuse_reply_err(request, so ? 0 : ENOENT);
  return {};
}

}  // namespace

bool is_announcer(const Server& server, fuse_req_t request) {
  const std::int32_t pid = server.shared.head().announce.pid;
  return pid != 0 && fuse_req_ctx(request)->pid == pid;
}

Result<bool> announced_lookup(Server& server, fuse_req_t request, fuse_ino_t dir, std::string_view name) {
  if (name.starts_with(kExpire)) {
    server.notifier.invalidate_entry(ino_of(dir), std::string(name.substr(kExpire.size())));
    return false;
  }
  const Announcing intent = server.shared.head().announce.intent;
  if (intent == Announcing::replacement && name == kFlip) {
    WEFT_CHECK(reply_link(server, request, dir));
    return true;
  }
  if (intent == Announcing::nothing || intent == Announcing::replacement) return false;
  const bool there = is_there(server, dir, name);
  if (intent == Announcing::creation && there) return Error{Errc::not_found, "a directory that the announcer makes"};
  if (intent == Announcing::creation || there) return false;
  WEFT_CHECK(intent == Announcing::removal_of_dir ? reply_directory(server, request, dir)
                                                  : reply_link(server, request, dir));
  return true;
}

Status announced_mkdir(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, mode_t) {
  if (!is_announcer(server, request)) return not_the_announcer();
  WEFT_TRY(const Attr attr, server.vfs.lookup(ino_of(dir), name));
  const fuse_entry_param entry = to_entry(attr, server.options);
  fuse_reply_entry(request, &entry);
  return {};
}

Status announced_removal(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name) {
  return reply_done(server, request, !is_there(server, dir, name));
}

Status announced_rename(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, fuse_ino_t new_dir,
                        const char* new_name, unsigned) {
  return reply_done(server, request, dir == new_dir && name == kFlip && is_there(server, new_dir, new_name));
}

}  // namespace weft
