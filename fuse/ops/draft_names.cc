// Names in new/: lookup, listing, creation and removal.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <vector>

#include "fuse/kernel/errors.h"
#include "fuse/kernel/protocol.h"
#include "fuse/ops/draft_ops.h"
#include "os/entries.h"

namespace weft {
namespace {

constexpr int kGroupsMax = 256;
constexpr double kLastingSeconds = 86400;

Status reply_entry(fuse_req_t request, const Result<DraftFound>& found) {
  if (answered_failure(request, found)) return {};
  const fuse_entry_param entry = entry_of_draft(*found);
  fuse_reply_entry(request, &entry);
  return {};
}

// Replies with a node that only this thread sees, for a draft that has become a version: the kernel is about to rename
// it. No draft has this node, and no program opens the node.
Status reply_stand_in(fuse_req_t request, const PublishOrder& order) {
  fuse_entry_param entry{};
  entry.ino = second_node(kNewIno | (order.request & kDraftNumberMask));
  entry.attr.st_ino = ino_of(entry.ino);
  entry.attr.st_mode = order.file ? S_IFREG | 0600 : S_IFDIR | 0700;
  entry.attr.st_nlink = 1;
  entry.attr.st_uid = order.user.uid;
  entry.attr.st_gid = order.user.gid;
  entry.attr_timeout = kLastingSeconds;
  fuse_reply_entry(request, &entry);
  return {};
}

using AddOne = std::size_t (*)(fuse_req_t, char*, std::size_t, const char*, const DraftFound&, off_t);

std::size_t add_name(fuse_req_t request, char* to, std::size_t room, const char* name, const DraftFound& found,
                     off_t next) {
  const struct stat facts = stat_of_draft(found);
  return fuse_add_direntry(request, to, room, name, &facts, next);
}

// Adds only name, inode and type: the kernel asks for attributes, which may change, when it needs them.
std::size_t add_bare_entry(fuse_req_t request, char* to, std::size_t room, const char* name, const DraftFound& found,
                           off_t next) {
  fuse_entry_param entry = entry_of_draft(found);
  entry.ino = 0;
  return fuse_add_direntry_plus(request, to, room, name, &entry, next);
}

// The kernel ignores so few bytes. It would cache a listing that ends with an empty reply (dir.cc).
constexpr char kEndNotKept[8] = {};

Status reply_list(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset, AddOne add) {
  if (offset == 0) share_namespaces(server, ino_of(dir));
  const ActingAs user = acting_for(request);
  std::vector<char> bytes(std::min(size, kReadBytesMax));
  std::size_t used = 0;
  const Status listed =
      server.drafts->list(ino_of(dir), offset, [&](const std::string& name, const DraftFound& found, off_t next) {
        const std::size_t room = bytes.size() - used;
        const std::size_t needed = add(request, bytes.data() + used, room, name.c_str(), found, next);
        if (needed <= room) used += needed;
        return needed <= room;
      });
  if (answered_failure(request, listed)) return {};
  if (used == 0)
    fuse_reply_buf(request, kEndNotKept, std::min(size, sizeof kEndNotKept));
  else
    fuse_reply_buf(request, bytes.data(), used);
  return {};
}

}  // namespace

Status may_publish(Server& server, const UserIds& user) {
  const auto now = std::chrono::steady_clock::now();
  Status may = server.rights.may_publish(user);
  const bool is_refused = !may.ok() && may.error().code == Errc::permission;
  if (may.ok() || is_refused) server.known_rights.note(user.uid, may.ok(), now);
  const bool is_away = !may.ok() && may.error().code == Errc::not_found && server.known_rights.heard(now);
  return is_away ? Error{Errc::unreachable, may.error().message} : may;
}

// A new draft needs the right to publish. If the daemon does not answer, the rename checks that right.
Status may_begin(Server& server, fuse_req_t request, Ino dir) {
  if (!server.drafts->is_shared(dir)) return {};
  const UserIds user = user_of(request);
  const Status may = may_publish(server, user);
  if (may.ok() || (may.error().code != Errc::not_found && may.error().code != Errc::permission)) return {};
  if (may.error().code == Errc::not_found && may_write_store(server, user)) return {};
  return Error{Errc::permission, "this user may not publish"};
}

bool may_write_store(Server& server, const UserIds& user) {
  const auto may_write = [&](const char* directory) {
    return may_write_directory(server.options.store + directory).ok();
  };
  return acting_as(user, [&] { return may_write("/index") && may_write("/packs"); });
}

UserIds user_of(fuse_req_t request) {
  const fuse_ctx* context = fuse_req_ctx(request);
  UserIds user{context->uid, context->gid, {}};
  if (user.uid == 0) return user;
  user.groups.resize(kGroupsMax);
  const int count = fuse_req_getgroups(request, kGroupsMax, user.groups.data());
  user.groups.resize(static_cast<std::size_t>(std::clamp(count, 0, kGroupsMax)));
  return user;
}

ActingAs acting_for(fuse_req_t request) {
  return ActingAs(user_of(request));
}

bool answered_failure(fuse_req_t request, const Status& done) {
  if (!done.ok()) fuse_reply_err(request, errno_of(done.error()));
  return !done.ok();
}

Status reply_done(fuse_req_t request, const Status& done) {
  if (!answered_failure(request, done)) fuse_reply_err(request, 0);
  return {};
}

// A file shows one link, however many it has. Others are the pack that the file became, or further names in new/, which
// a change separates. Some programs take a file with two links for an attack.
struct stat stat_of_draft(const DraftFound& found) {
  struct stat out = found.st;
  out.st_ino = found.ino;
  if (S_ISREG(out.st_mode)) out.st_nlink = std::min<nlink_t>(1, out.st_nlink);
  return out;
}

// The kernel caches nothing: another mount of the store may change the draft. The generation lets it drop the node of a
// removed draft whose number a new one has: a removed directory may still have a name there, and a new directory that
// is taken for it fails with ESTALE.
fuse_entry_param entry_of_draft(const DraftFound& found) {
  fuse_entry_param entry{};
  entry.ino = found.ino;
  entry.generation = found.generation;
  entry.attr = stat_of_draft(found);
  return entry;
}

// The name new/ stays in the kernel's cache: publish_asked() finds it there.
Status draft_lookup_top(Server& server, fuse_req_t request) {
  publish_asked(server, request);
  const auto st = server.drafts->stat(kNewIno);
  if (answered_failure(request, st)) return {};
  fuse_entry_param entry = entry_of_draft({kNewIno, *st});
  entry.entry_timeout = kLastingSeconds;
  fuse_reply_entry(request, &entry);
  return {};
}

Status draft_lookup(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name) {
  const fuse_ctx* context = fuse_req_ctx(request);
  const auto renamed =
      server.publish_renames.published(static_cast<std::uint32_t>(context->pid), context->uid, ino_of(dir), name);
  if (renamed) return reply_stand_in(request, *renamed);
  auto found = acting_as(user_of(request), [&] { return server.drafts->lookup(ino_of(dir), name); });
  if (!found.ok() && found.error().code == Errc::not_found) found = share_namespace(server, ino_of(dir), name);
  return reply_entry(request, found);
}

Status draft_readdir(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset, fuse_file_info*) {
  return reply_list(server, request, dir, size, offset, add_name);
}

Status draft_readdirplus(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset,
                         fuse_file_info*) {
  return reply_list(server, request, dir, size, offset, add_bare_entry);
}

Status draft_mkdir(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, mode_t mode) {
  if (answered_failure(request, may_begin(server, request, ino_of(dir)))) return {};
  if (answered_failure(request, server.draft_space->admit_inode(fuse_req_ctx(request)->uid))) return {};
  const ActingAs user = acting_for(request);
  return reply_entry(request, server.drafts->make_directory(ino_of(dir), name, mode));
}

Status draft_unlink(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name) {
  server.checkpoints->wait_for_scan(ino_of(dir));
  const ActingAs user = acting_for(request);
  return reply_done(request, server.drafts->remove(ino_of(dir), name, 0));
}

Status draft_rmdir(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name) {
  server.checkpoints->wait_for_scan(ino_of(dir));
  const ActingAs user = acting_for(request);
  return reply_done(request, server.drafts->remove(ino_of(dir), name, AT_REMOVEDIR));
}

Status draft_symlink(Server& server, fuse_req_t request, const char* target, fuse_ino_t dir, const char* name) {
  if (answered_failure(request, may_begin(server, request, ino_of(dir)))) return {};
  if (answered_failure(request, server.draft_space->admit_inode(fuse_req_ctx(request)->uid))) return {};
  const ActingAs user = acting_for(request);
  return reply_entry(request, server.drafts->make_link(ino_of(dir), name, target));
}

Status draft_link(Server& server, fuse_req_t request, fuse_ino_t node, fuse_ino_t dir, const char* name) {
  const Ino to = ino_of(dir);
  if (!is_draft(to)) return Error{Errc::read_only, "a published file"};
  if (answered_failure(request, may_begin(server, request, to))) return {};
  return reply_entry(request, link_draft(*server.drafts, user_of(request), ino_of(node), to, name));
}

}  // namespace weft
