// Files of new/: their attributes, and what is open.
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <span>

#include "fuse/drafts/draft_file.h"
#include "fuse/kernel/init_exchange.h"
#include "fuse/kernel/protocol.h"
#include "fuse/ops/draft_ops.h"
#include "fuse/ops/ops.h"

namespace weft {
namespace {

// The file may have no name any more.
Result<std::shared_ptr<DraftFile>> open_draft(Server& server, fuse_ino_t node) {
  WEFT_TRY(auto file, server.open_files.find(node));
  if (!file) return Error{Errc::not_found, "a draft that is not open"};
  return std::static_pointer_cast<DraftFile>(std::move(file));
}

bool is_for_writing(const fuse_file_info* file) {
  return (file->flags & O_ACCMODE) != O_RDONLY;
}

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

// Of what an act makes `size` bytes long, or longer.
std::uint64_t growth_to(Server& server, fuse_ino_t node, off_t size) {
  DraftFound found;
  if (stat_draft(server, node, found) != 0 || size <= found.st.st_size) return 0;
  return static_cast<std::uint64_t>(size - found.st.st_size);
}

int set_size(Server& server, fuse_ino_t node, off_t size, const fuse_file_info* file) {
  const auto open = file != nullptr ? open_draft(server, node) : Error{Errc::not_found, "no handle"};
  if (open.ok())
    if (const auto fd = (*open)->writable(); fd.ok()) return ::ftruncate((*fd)->get(), size) == 0 ? 0 : -errno;
  return server.drafts->set_size(ino_of(node), static_cast<std::uint64_t>(size));
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

// The change is made with the user's rights. The space of all drafts is counted with those of this process.
int set_attributes(Server& server, const UserIds& user, fuse_ino_t node, const struct stat& wanted, int to_set,
                   const fuse_file_info* file) {
  const Ino ino = ino_of(node);
  const auto as_user = [&user](const std::function<int()>& act) {
    const ActingAs acting(user);
    return act();
  };
  int failed = as_user([&] {
    const int owned = file == nullptr ? server.drafts->own(ino, false) : 0;
    return owned != 0 ? owned : set_mode_and_owner(server, ino, wanted, to_set);
  });
  if (failed == 0 && (to_set & FUSE_SET_ATTR_SIZE) != 0)
    failed = server.draft_space->announce(
        [&] { return growth_to(server, node, wanted.st_size); },
        [&] { return as_user([&] { return set_size(server, node, wanted.st_size, file); }); });
  return failed != 0 ? failed : as_user([&] { return set_times(server, ino, wanted, to_set); });
}

// A checkpoint may be published between the first look and the open: then the second look sees it.
int try_to_open(DraftTree& drafts, Ino ino, int flags, Fd& fd) {
  const bool empties = (flags & O_TRUNC) != 0;
  const int way = flags & O_ACCMODE;
  if (way == O_RDONLY && !empties) return drafts.open(ino, O_RDONLY, fd);
  if (const int failed = drafts.own(ino, empties); failed != 0) return failed;
  if (const int failed = drafts.open(ino, way == O_RDONLY ? O_RDWR : way, fd); failed != 0) return failed;
  if (const int failed = drafts.own(ino, empties); failed != 0) return failed;
  return empties && ::ftruncate(fd.get(), 0) != 0 ? -errno : 0;
}

kernel::Attr kernel_attr(const struct stat& st) {
  kernel::Attr out{};
  out.ino = st.st_ino;
  out.size = static_cast<std::uint64_t>(st.st_size);
  out.blocks = static_cast<std::uint64_t>(st.st_blocks);
  out.atime = static_cast<std::uint64_t>(st.st_atim.tv_sec);
  out.mtime = static_cast<std::uint64_t>(st.st_mtim.tv_sec);
  out.ctime = static_cast<std::uint64_t>(st.st_ctim.tv_sec);
  out.atime_ns = static_cast<std::uint32_t>(st.st_atim.tv_nsec);
  out.mtime_ns = static_cast<std::uint32_t>(st.st_mtim.tv_nsec);
  out.ctime_ns = static_cast<std::uint32_t>(st.st_ctim.tv_nsec);
  out.mode = st.st_mode;
  out.nlink = static_cast<std::uint32_t>(st.st_nlink);
  out.uid = st.st_uid;
  out.gid = st.st_gid;
  out.blksize = static_cast<std::uint32_t>(st.st_blksize);
  return out;
}

// libfuse 3.14 has no backing id in its reply.
int reply_created(fuse_req_t request, const DraftFound& made, fuse_file_info* file, const OpenAnswer& answer) {
  const fuse_entry_param entry = entry_of_draft(made);
  if (answer.way != ReadWay::passthrough) {
    file->noflush = 1;
    file->direct_io = 1;
    return fuse_reply_create(request, &entry, file);
  }
  struct {
    kernel::EntryOut entry;
    kernel::OpenOut open;
  } out{};
  static_assert(sizeof out == sizeof(kernel::EntryOut) + sizeof(kernel::OpenOut));
  out.entry.nodeid = made.ino;
  out.entry.attr = kernel_attr(entry.attr);
  out.open = {file->fh, kernel::kOpenPassthrough | kernel::kOpenNoFlush, answer.backing_id};
  return fuse_reply_buf(request, reinterpret_cast<const char*>(&out), sizeof out);
}

// Before the kernel is told of the open: what it opens by itself then is a writer's too.
Status note_writer(Server& server, fuse_ino_t node, const fuse_file_info* file, Fd fd) {
  if (!is_for_writing(file)) return {};
  WEFT_TRY(const auto open, open_draft(server, node));
  open->writer_opened(std::move(fd));
  return {};
}

void close_draft(Server& server, fuse_ino_t node, const fuse_file_info* file) {
  if (is_for_writing(file))
    if (const auto open = open_draft(server, node); open.ok()) (*open)->writer_closed();
  server.open_files.close(node, file->fh);
}

}  // namespace

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

Status draft_release(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file) {
  close_draft(server, node, file);
  fuse_reply_err(request, 0);
  Ino dir = 0;
  if (is_for_writing(file) && server.drafts->parent(ino_of(node), dir) == 0) server.checkpoints->changed(dir);
  return {};
}

// The user's rights are asked for by opening it as he wants it; what is kept open is shared by all who have it open.
Status draft_open(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file) {
  Fd tried;
  if (is_for_writing(file) && answered_failure(request, server.draft_space->admit())) return {};
  {
    const ActingAs user = acting_for(request);
    if (answered_failure(request, try_to_open(*server.drafts, ino_of(node), file->flags, tried))) return {};
  }
  file->fh = current_request();
  WEFT_TRY(const OpenAnswer answer, server.open_files.open(node, file->fh));
  WEFT_CHECK(note_writer(server, node, file, std::move(tried)));
  if (send_opened(request, file, answer) == -ENOENT) close_draft(server, node, file);
  return {};
}

Status draft_create(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, mode_t mode,
                    fuse_file_info* file) {
  if (answered_failure(request, may_begin(server, request, ino_of(dir)))) return {};
  if (answered_failure(request, server.draft_space->admit())) return {};
  const ActingAs user = acting_for(request);
  DraftFound made;
  Fd fd;
  if (answered_failure(request, server.drafts->create(ino_of(dir), name, file->flags, mode, made, fd))) return {};
  file->fh = current_request();
  WEFT_TRY(const OpenAnswer answer, server.open_files.open(made.ino, file->fh));
  WEFT_CHECK(note_writer(server, made.ino, file, std::move(fd)));
  if (answered_failure(request, server.drafts->finish_creating(ino_of(dir), mode, made))) {
    close_draft(server, made.ino, file);
    return {};
  }
  if (reply_created(request, made, file, answer) == -ENOENT) close_draft(server, made.ino, file);
  return {};
}

Status draft_write(Server& server, fuse_req_t request, fuse_ino_t node, const char* bytes, size_t size, off_t offset,
                   fuse_file_info*) {
  WEFT_TRY(const auto file, server.open_files.find(node));
  if (!file || offset < 0) return Error{Errc::invalid, "a write to a draft that is not open"};
  Status written;
  const int failed = server.draft_space->write(growth_to(server, node, offset + static_cast<off_t>(size)), [&] {
    written = file->write(static_cast<std::uint64_t>(offset), std::as_bytes(std::span(bytes, size)));
    return written.ok() ? 0 : -EIO;
  });
  WEFT_CHECK(std::move(written));
  if (!answered_failure(request, failed)) fuse_reply_write(request, size);
  return {};
}

Status draft_lseek(Server& server, fuse_req_t request, fuse_ino_t node, off_t offset, int whence, fuse_file_info*) {
  WEFT_TRY(const auto open, open_draft(server, node));
  const off_t found = ::lseek(open->backing_fd(), offset, whence);
  if (answered_failure(request, found < 0 ? -errno : 0)) return {};
  fuse_reply_lseek(request, found);
  return {};
}

Status draft_fsync(Server& server, fuse_req_t request, fuse_ino_t node, int data_only, fuse_file_info*) {
  WEFT_TRY(const auto open, open_draft(server, node));
  const int fd = open->backing_fd();
  const int done = data_only != 0 ? ::fdatasync(fd) : ::fsync(fd);
  fuse_reply_err(request, done == 0 ? 0 : errno);
  return {};
}

Status draft_fsyncdir(Server& server, fuse_req_t request, fuse_ino_t dir, int, fuse_file_info*) {
  Fd fd;
  if (answered_failure(request, server.drafts->open(ino_of(dir), O_RDONLY | O_DIRECTORY, fd))) return {};
  fuse_reply_err(request, ::fsync(fd.get()) == 0 ? 0 : errno);
  return {};
}

Status draft_fallocate(Server& server, fuse_req_t request, fuse_ino_t node, int mode, off_t offset, off_t length,
                       fuse_file_info*) {
  WEFT_TRY(const auto open, open_draft(server, node));
  WEFT_TRY(const auto fd, open->writable());
  const bool punches = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
  if (mode != 0 && mode != FALLOC_FL_ZERO_RANGE && !punches) {  // space behind the end of the file would not count
    fuse_reply_err(request, EOPNOTSUPP);
    return {};
  }
  const int failed =
      server.draft_space->announce([&] { return punches ? 0 : growth_to(server, node, offset + length); },
                                   [&] { return ::fallocate(fd->get(), mode, offset, length) == 0 ? 0 : -errno; });
  fuse_reply_err(request, -failed);
  return {};
}

}  // namespace weft
