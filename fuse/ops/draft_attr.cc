// Attributes and sizes of files in new/.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>

#include "fuse/drafts/draft_file.h"
#include "fuse/ops/draft_ops.h"

namespace weft {
namespace {

constexpr off_t kTailMax = off_t{64} << 20U;  // bytes; a longer tail is freed before the truncation

int stat_draft(Server& server, fuse_ino_t node, DraftFound& found) {
  found.ino = ino_of(node);
  const int failed = server.drafts->stat(found.ino, found.st);
  if (failed != -ENOENT) return failed;
  const auto file = open_draft(server, node);
  if (!file.ok()) return -ENOENT;
  return ::fstat((*file)->backing_fd(), &found.st) == 0 ? 0 : -errno;
}

Status reply_attr(Server& server, fuse_req_t request, fuse_ino_t node) {
  DraftFound found;
  if (answered_failure(request, stat_draft(server, node, found))) return {};
  const struct stat out = stat_of_draft(found);
  fuse_reply_attr(request, &out, 0);
  return {};
}

timespec time_to_set(int to_set, int given, int now, const timespec& time) {
  if ((to_set & now) != 0) return {0, UTIME_NOW};
  return (to_set & given) != 0 ? time : timespec{0, UTIME_OMIT};
}

// Returns 0 if the file cannot be examined: the change itself fails then.
off_t size_of(int fd) {
  struct stat st {};
  return ::fstat(fd, &st) == 0 ? st.st_size : 0;
}

// Bytes by which a file grows if a change makes it at least `size` bytes long.
std::uint64_t growth_to(int fd, off_t size) {
  const off_t now = size_of(fd);
  return size > now ? static_cast<std::uint64_t>(size - now) : 0;
}

// Returns the program's open descriptor, else opens one with the rights of the calling thread.
int descriptor_to_change(Server& server, fuse_ino_t node, const fuse_file_info* file, std::shared_ptr<const Fd>& out) {
  if (file != nullptr)
    if (const auto open = open_draft(server, node); open.ok())
      if (auto fd = (*open)->writable(); fd.ok()) {
        out = std::move(*fd);
        return 0;
      }
  Fd fd;
  const int failed = server.drafts->open(ino_of(node), O_WRONLY, fd);
  out = std::make_shared<const Fd>(std::move(fd));
  return failed;
}

// Frees the blocks of a long tail before a truncation. Freeing many blocks takes long, and other size announcements
// should not wait for it. If the file system cannot punch holes, they wait.
void give_back_tail(int fd, off_t size) {
  const off_t now = size_of(fd);
  if (now - size > kTailMax)
    static_cast<void>(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, size, now - size));
}

int set_size(Server& server, const UserIds& user, fuse_ino_t node, off_t size, const fuse_file_info* file) {
  std::shared_ptr<const Fd> fd;
  const int failed = acting_as(user, [&] { return descriptor_to_change(server, node, file, fd); });
  if (failed != 0) return failed;
  give_back_tail(fd->get(), size);
  return server.draft_space->announce(
      [&] { return growth_to(fd->get(), size); },
      [&] { return acting_as(user, [&] { return ::ftruncate(fd->get(), size) == 0 ? 0 : -errno; }); });
}

int set_mode_and_owner(Server& server, Ino ino, const struct stat& wanted, int to_set) {
  int failed = (to_set & FUSE_SET_ATTR_MODE) != 0 ? server.drafts->set_mode(ino, wanted.st_mode) : 0;
  if (failed != 0 || (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) == 0) return failed;
  const uid_t uid = (to_set & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
  const gid_t gid = (to_set & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
  return server.drafts->set_owner(ino, uid, gid);
}

int set_times(Server& server, Ino ino, const struct stat& wanted, int to_set) {
  constexpr int kTimes = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  if ((to_set & kTimes) == 0) return 0;
  const timespec times[2] = {time_to_set(to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, wanted.st_atim),
                             time_to_set(to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, wanted.st_mtim)};
  return server.drafts->set_times(ino, times);
}

int set_attributes(Server& server, const UserIds& user, fuse_ino_t node, const struct stat& wanted, int to_set,
                   const fuse_file_info* file) {
  const Ino ino = ino_of(node);
  int failed = file == nullptr ? own_draft(server, user, ino, false) : 0;
  if (failed == 0) failed = acting_as(user, [&] { return set_mode_and_owner(server, ino, wanted, to_set); });
  if (failed == 0 && (to_set & FUSE_SET_ATTR_SIZE) != 0) failed = set_size(server, user, node, wanted.st_size, file);
  return failed != 0 ? failed : acting_as(user, [&] { return set_times(server, ino, wanted, to_set); });
}

// Allocating the last byte sets the file's size, which is announced. Allocating the remaining blocks may be slow, so it
// comes after the announcement. If they do not fit, the file keeps its new size, as on some file systems.
int allocate(Server& server, int fd, int mode, off_t offset, off_t length) {
  const off_t end = offset + length;
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const auto call = [fd](int how, off_t from, off_t bytes) {
    return ::fallocate(fd, how, from, bytes) == 0 ? 0 : -errno;
  };
  const int failed =
      keeps_size || end < offset || length == 0
          ? 0
          : server.draft_space->announce([&] { return growth_to(fd, end); },
                                         [&] { return growth_to(fd, end) == 0 ? 0 : call(mode, end - 1, 1); });
  return failed != 0 ? failed : call(mode, offset, length);
}

}  // namespace

Result<std::shared_ptr<DraftFile>> open_draft(Server& server, fuse_ino_t node) {
  WEFT_TRY(auto file, server.open_files.find(node));
  if (!file) return Error{Errc::not_found, "a draft that is not open"};
  return std::static_pointer_cast<DraftFile>(std::move(file));
}

int acting_as(const UserIds& user, const std::function<int()>& act) {
  const ActingAs acting(user);
  return act();
}

int own_draft(Server& server, const UserIds& user, Ino ino, bool empty) {
  std::uint64_t bytes = 0;
  if (!empty) {
    const ActingAs acting(user);
    bytes = server.drafts->bytes_to_copy(ino);
  }
  int done = 0;
  const int failed = server.draft_space->write(bytes, [&] {
    done = acting_as(user, [&] { return server.drafts->own(ino, empty); });
    return done == -ESTALE ? 0 : done;
  });
  return failed != 0 ? failed : done;
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
  fuse_reply_err(request, -server.drafts->access(ino_of(node), mask));
  return {};
}

Status draft_readlink(Server& server, fuse_req_t request, fuse_ino_t node) {
  std::string target;
  if (answered_failure(request, server.drafts->read_link(ino_of(node), target))) return {};
  fuse_reply_readlink(request, target.c_str());
  return {};
}

Status draft_fallocate(Server& server, fuse_req_t request, fuse_ino_t node, int mode, off_t offset, off_t length,
                       fuse_file_info*) {
  WEFT_TRY(const auto open, open_draft(server, node));
  WEFT_TRY(const auto fd, open->writable());
  const bool punches = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
  // other modes leave space that does not count
  const bool known = mode == 0 || mode == FALLOC_FL_ZERO_RANGE || punches;
  fuse_reply_err(request, known ? -allocate(server, fd->get(), mode, offset, length) : EOPNOTSUPP);
  return {};
}

}  // namespace weft
