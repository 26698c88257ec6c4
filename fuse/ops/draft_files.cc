// Open files of new/.
#include <fcntl.h>

#include <cerrno>
#include <span>

#include "drafts/draft_file.h"
#include "fuse/kernel/init_exchange.h"
#include "fuse/kernel/protocol.h"
#include "fuse/ops/draft_ops.h"
#include "fuse/ops/ops.h"
#include "os/entries.h"

namespace weft {
namespace {

bool is_for_writing(const fuse_file_info* file) {
  return (file->flags & O_ACCMODE) != O_RDONLY;
}

// Opens a file for a user. A checkpoint may be published between the first own_draft() and the open, so it runs again.
Result<Fd> try_to_open(Server& server, const UserIds& user, Ino ino, int flags) {
  const bool empties = (flags & O_TRUNC) != 0;
  const int way = flags & O_ACCMODE;
  const int wanted = way == O_RDONLY && empties ? O_RDWR : way;
  const auto open = [&] { return acting_as(user, [&] { return server.drafts->open(ino, wanted); }); };
  if (wanted == O_RDONLY) return open();
  WEFT_CHECK(own_draft(server, user, ino, empties));
  WEFT_TRY(Fd fd, open());
  WEFT_CHECK(own_draft(server, user, ino, empties));
  if (empties) WEFT_CHECK(acting_as(user, [&] { return resize_file(fd.get(), 0, "a draft"); }));
  return fd;
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

// Replies to a create. libfuse 3.14 cannot send a backing id.
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
  out.entry.generation = made.generation;
  out.entry.attr = kernel_attr(entry.attr);
  out.open = {file->fh, kernel::kOpenPassthrough | kernel::kOpenNoFlush, answer.backing_id};
  return fuse_reply_buf(request, reinterpret_cast<const char*>(&out), sizeof out);
}

// Registers a writer. Called before the reply, at which the kernel opens the file for writing itself: no check in
// between may find the file unwritten.
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

Status draft_release(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file) {
  const uid_t user = server.open_files.opener(file->fh);  // the kernel does not say who closes
  close_draft(server, node, file);
  fuse_reply_err(request, 0);
  if (!is_for_writing(file)) return {};
  if (const auto dir = server.drafts->places().parent(ino_of(node)); dir.ok()) server.checkpoints->changed(*dir, user);
  return {};
}

// Checks the user's rights by an open with the user's flags. All openers share the descriptor that is kept.
Status draft_open(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file) {
  if (is_for_writing(file) && answered_failure(request, server.draft_space->admit())) return {};
  file->fh = current_request();
  auto share = server.open_files.share_for_draft(fuse_req_ctx(request)->uid, file->fh, node);
  if (answered_failure(request, share)) return {};
  auto tried = try_to_open(server, user_of(request), ino_of(node), file->flags);
  if (answered_failure(request, tried)) return {};
  WEFT_TRY(const OpenAnswer answer, server.open_files.open(node, file->fh, std::move(share).value()));
  WEFT_CHECK(note_writer(server, node, file, std::move(tried).value()));
  if (send_opened(request, file, answer) == -ENOENT) close_draft(server, node, file);
  return {};
}

Status draft_create(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, mode_t mode,
                    fuse_file_info* file) {
  if (answered_failure(request, may_begin(server, request, ino_of(dir)))) return {};
  if (answered_failure(request, server.draft_space->admit())) return {};
  if (answered_failure(request, server.draft_space->admit_inode(fuse_req_ctx(request)->uid))) return {};
  file->fh = current_request();
  auto share = server.open_files.share_for_draft(fuse_req_ctx(request)->uid, file->fh, {});
  if (answered_failure(request, share)) return {};
  const ActingAs user = acting_for(request);
  auto created = server.drafts->create(ino_of(dir), name, file->flags, mode);
  if (answered_failure(request, created)) return {};
  DraftFound& made = created->found;
  WEFT_TRY(const OpenAnswer answer, server.open_files.open(made.ino, file->fh, std::move(share).value()));
  WEFT_CHECK(note_writer(server, made.ino, file, std::move(created->fd)));
  if (answered_failure(request, server.drafts->finish_creating(ino_of(dir), mode, made))) {
    close_draft(server, made.ino, file);
    return {};
  }
  if (reply_created(request, made, file, answer) == -ENOENT) close_draft(server, made.ino, file);
  return {};
}

// A failed write is answered, and logged if need be, by ops.cc.
Status draft_write(Server& server, fuse_req_t request, fuse_ino_t node, const char* bytes, size_t size, off_t offset,
                   fuse_file_info*) {
  WEFT_TRY(const auto file, open_draft(server, node));
  if (offset < 0) return Error{Errc::invalid, "a write before the begin of a draft"};
  const std::uint64_t begin = static_cast<std::uint64_t>(offset), end = begin + size, now = file->size();
  Status written;
  const Status admitted = server.draft_space->write(
      end > now ? end - now : 0, [&] { return written = file->write(begin, std::as_bytes(std::span(bytes, size))); });
  WEFT_CHECK(std::move(written));
  if (!answered_failure(request, admitted)) fuse_reply_write(request, size);
  return {};
}

Status draft_lseek(Server& server, fuse_req_t request, fuse_ino_t node, off_t offset, int whence, fuse_file_info*) {
  WEFT_TRY(const auto open, open_draft(server, node));
  const auto found = seek_file(open->backing_fd(), offset, whence);
  if (answered_failure(request, found)) return {};
  fuse_reply_lseek(request, *found);
  return {};
}

Status draft_fsync(Server& server, fuse_req_t request, fuse_ino_t node, int data_only, fuse_file_info*) {
  WEFT_TRY(const auto open, open_draft(server, node));
  const int fd = open->backing_fd();
  return reply_done(request, data_only != 0 ? sync_data(fd, "a draft") : sync_file(fd, "a draft"));
}

Status draft_fsyncdir(Server& server, fuse_req_t request, fuse_ino_t dir, int, fuse_file_info*) {
  const auto fd = server.drafts->open_to_list(ino_of(dir));
  return reply_done(request, fd.ok() ? sync_file(fd->get(), "new/") : Status(fd.error()));
}

}  // namespace weft
