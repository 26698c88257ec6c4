// Attributes and sizes of files in new/.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cerrno>
#include <memory>

#include "drafts/draft_file.h"
#include "fuse/ops/draft_ops.h"
#include "os/entries.h"

namespace weft {
namespace {

constexpr off_t kTailMax = off_t{64} << 20U;  // bytes; a longer tail is freed before the truncation

Result<DraftFound> stat_draft(Server& server, fuse_ino_t node) {
  auto st = server.drafts->stat(ino_of(node));
  if (!st.ok() && st.error().code == Errc::not_found) {
    const auto file = open_draft(server, node);
    if (!file.ok()) return st.error();
    st = stat_fd((*file)->backing_fd(), "a draft");
  }
  return st.ok() ? DraftFound{ino_of(node), *st} : Result<DraftFound>(st.error());
}

Status reply_attr(Server& server, fuse_req_t request, fuse_ino_t node) {
  const auto found = stat_draft(server, node);
  if (answered_failure(request, found)) return {};
  const struct stat out = stat_of_draft(*found);
  fuse_reply_attr(request, &out, 0);
  return {};
}

timespec time_to_set(int to_set, int given, int now, const timespec& time) {
  if ((to_set & now) != 0) return {0, UTIME_NOW};
  return (to_set & given) != 0 ? time : timespec{0, UTIME_OMIT};
}

// Returns 0 if the file cannot be examined: the change itself fails then.
off_t size_of(int fd) {
  const auto st = stat_fd(fd, "a draft");
  return st.ok() ? st->st_size : 0;
}

// Bytes by which a file grows if a change makes it at least `size` bytes long.
std::uint64_t growth_to(int fd, off_t size) {
  const off_t now = size_of(fd);
  return size > now ? static_cast<std::uint64_t>(size - now) : 0;
}

// Returns the program's open descriptor, else opens one with the rights of the calling thread.
Result<std::shared_ptr<const Fd>> descriptor_to_change(Server& server, fuse_ino_t node, const fuse_file_info* file) {
  if (file != nullptr)
    if (const auto open = open_draft(server, node); open.ok())
      if (auto fd = (*open)->writable(); fd.ok()) return fd;
  WEFT_TRY(Fd fd, server.drafts->open(ino_of(node), O_WRONLY));
  return std::make_shared<const Fd>(std::move(fd));
}

// Frees the blocks of a long tail before a truncation. Freeing many blocks takes long, and other size announcements
// should not wait for it. If the file system cannot punch holes, they wait.
void give_back_tail(int fd, off_t size) {
  const off_t now = size_of(fd);
  if (now - size > kTailMax)
    static_cast<void>(change_blocks(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, size, now - size));
}

Status set_size(Server& server, const UserIds& user, fuse_ino_t node, off_t size, const fuse_file_info* file) {
  WEFT_TRY(const auto fd, acting_as(user, [&] { return descriptor_to_change(server, node, file); }));
  give_back_tail(fd->get(), size);
  const auto resize = [&] { return resize_file(fd->get(), static_cast<std::uint64_t>(size), "a draft"); };
  return server.draft_space->announce([&] { return growth_to(fd->get(), size); },
                                      [&] { return acting_as(user, resize); });
}

Status set_mode_and_owner(Server& server, Ino ino, const struct stat& wanted, int to_set) {
  if ((to_set & FUSE_SET_ATTR_MODE) != 0) WEFT_CHECK(server.drafts->set_mode(ino, wanted.st_mode));
  if ((to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) == 0) return {};
  const uid_t uid = (to_set & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
  const gid_t gid = (to_set & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
  return server.drafts->set_owner(ino, uid, gid);
}

Status set_times(Server& server, Ino ino, const struct stat& wanted, int to_set) {
  constexpr int kTimes = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  if ((to_set & kTimes) == 0) return {};
  const timespec times[2] = {time_to_set(to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, wanted.st_atim),
                             time_to_set(to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, wanted.st_mtim)};
  return server.drafts->set_times(ino, times);
}

Status set_attributes(Server& server, const UserIds& user, fuse_ino_t node, const struct stat& wanted, int to_set,
                      const fuse_file_info* file) {
  const Ino ino = ino_of(node);
  if (file == nullptr) WEFT_CHECK(own_draft(server, user, ino, false));
  WEFT_CHECK(acting_as(user, [&] { return set_mode_and_owner(server, ino, wanted, to_set); }));
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) WEFT_CHECK(set_size(server, user, node, wanted.st_size, file));
  return acting_as(user, [&] { return set_times(server, ino, wanted, to_set); });
}

// Allocating the last byte sets the file's size, which is announced. Allocating the remaining blocks may be slow, so it
// comes after the announcement. If they do not fit, the file keeps its new size, as on some file systems.
Status allocate(Server& server, int fd, int mode, off_t offset, off_t length) {
  const off_t end = offset + length;
  const bool grows = (mode & FALLOC_FL_KEEP_SIZE) == 0 && end >= offset && length != 0;
  const auto set_end = [&] { return growth_to(fd, end) == 0 ? Status{} : change_blocks(fd, mode, end - 1, 1); };
  if (grows) WEFT_CHECK(server.draft_space->announce([&] { return growth_to(fd, end); }, set_end));
  return change_blocks(fd, mode, offset, length);
}

}  // namespace

Result<std::shared_ptr<DraftFile>> open_draft(Server& server, fuse_ino_t node) {
  WEFT_TRY(auto file, server.open_files.find(node));
  if (!file) return Error{Errc::not_found, "a draft that is not open"};
  return std::static_pointer_cast<DraftFile>(std::move(file));
}

Status own_draft(Server& server, const UserIds& user, Ino ino, bool empty) {
  const auto to_copy = [&] { return server.drafts->bytes_to_copy(ino); };
  const std::uint64_t bytes = empty ? 0 : acting_as(user, to_copy);
  Status done;
  WEFT_CHECK(server.draft_space->write(bytes, [&] {
    done = acting_as(user, [&] { return server.drafts->own(ino, empty); });
    const bool replaced = !done.ok() && done.error().code == Errc::changed;  // the copy is made
    return replaced ? Status{} : done;
  }));
  return done;
}

Status draft_getattr(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info*) {
  return reply_attr(server, request, node);
}

Status draft_setattr(Server& server, fuse_req_t request, fuse_ino_t node, struct stat* wanted, int to_set,
                     fuse_file_info* file) {
  if (answered_failure(request, set_attributes(server, user_of(request), node, *wanted, to_set, file))) return {};
  return reply_attr(server, request, node);
}

Status draft_access(Server& server, fuse_req_t request, fuse_ino_t node, int mask) {
  const ActingAs user = acting_for(request);
  return reply_done(request, server.drafts->access(ino_of(node), mask));
}

Status draft_readlink(Server& server, fuse_req_t request, fuse_ino_t node) {
  const auto target = server.drafts->read_link(ino_of(node));
  if (answered_failure(request, target)) return {};
  fuse_reply_readlink(request, target->c_str());
  return {};
}

Status draft_fallocate(Server& server, fuse_req_t request, fuse_ino_t node, int mode, off_t offset, off_t length,
                       fuse_file_info*) {
  WEFT_TRY(const auto open, open_draft(server, node));
  WEFT_TRY(const auto fd, open->writable());
  const bool punches = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
  // other modes leave space that does not count
  const bool known = mode == 0 || mode == FALLOC_FL_ZERO_RANGE || punches;
  if (known) return reply_done(request, allocate(server, fd->get(), mode, offset, length));
  fuse_reply_err(request, EOPNOTSUPP);
  return {};
}

}  // namespace weft
