#include "fuse/ops/ops.h"

#include <cerrno>
#include <new>

#include "base/log.h"
#include "fuse/kernel/errors.h"
#include "fuse/ops/announce.h"
#include "fuse/ops/draft_ops.h"
#include "os/programs.h"
#include "weft/bytes/cold.h"

namespace weft {
namespace {

void reply_error(fuse_req_t request, const Error& error) {
  if (is_fault(error.code)) log_warning("{}", error.message);
  log_debug(LogCategory::mount, "request {}: {}", current_request(), error.message);
  const bool too_many = error.os_error == EMFILE || error.os_error == ENFILE;  // descriptors of this process, or of all
  fuse_reply_err(request, too_many ? error.os_error : errno_of(error.code));
}

// False if the requesting process is being killed: the request then ends at once. Other signals do not interrupt it, so
// a timer does not interrupt a read.
bool is_wanted(fuse_req_t request) {
  return fuse_req_interrupted(request) == 0 || !is_being_killed(fuse_req_ctx(request)->pid);
}

// Wraps an operation as a C callback: failures and exceptions become error replies. Operations do not throw after they
// have replied.
template <auto Operation>
struct Answer;

template <class... Args, Status (*Operation)(Server&, fuse_req_t, Args...)>
struct Answer<Operation> {
  static void call(fuse_req_t request, Args... args) {
    Server& server = *static_cast<Server*>(fuse_req_userdata(request));
    const auto wanted = [&server, request] {
      server.requests.alive();
      return is_wanted(request);
    };
    const ColdWait wait(wanted, [request] { return is_in_page_fault(fuse_req_ctx(request)->pid); });
    try {
      const Status status = Operation(server, request, args...);
      if (!status.ok()) reply_error(request, status.error());
    } catch (const std::bad_alloc&) {
      fuse_reply_err(request, ENOMEM);
    } catch (const std::exception& failure) {
      reply_error(request, Error{Errc::internal, failure.what()});
    }
  }
};

// Calls the operation of new/ if the node is a draft, else the plain one. For published files every user gets EROFS, as
// programs expect of a read-only file system.
template <auto Plain, auto OfDraft>
struct Either;

template <class... Args, Status (*Plain)(Server&, fuse_req_t, fuse_ino_t, Args...),
          Status (*OfDraft)(Server&, fuse_req_t, fuse_ino_t, Args...)>
struct Either<Plain, OfDraft> {
  static Status act(Server& server, fuse_req_t request, fuse_ino_t node, Args... args) {
    const bool draft = server.drafts && is_draft(ino_of(node));
    return draft ? OfDraft(server, request, node, args...) : Plain(server, request, node, args...);
  }
  static constexpr auto call = Answer<act>::call;
};

template <class... Args>
Status read_only(Server&, fuse_req_t, fuse_ino_t, Args...) {
  return Error{Errc::read_only, "a published file"};
}

// Refuses devices and user xattrs in new/: programs do without them.
template <int error, class... Args>
Status refused(Server&, fuse_req_t request, fuse_ino_t, Args...) {
  fuse_reply_err(request, error);
  return {};
}

template <auto OfDraft>
struct Draft;
template <class... Args, Status (*OfDraft)(Server&, fuse_req_t, fuse_ino_t, Args...)>
struct Draft<OfDraft> {
  static constexpr auto call = Either<read_only<Args...>, OfDraft>::call;
};

Status symlink(Server& server, fuse_req_t request, const char* target, fuse_ino_t dir, const char* name) {
  if (!server.drafts || !is_draft(ino_of(dir))) return Error{Errc::read_only, "a published file"};
  return draft_symlink(server, request, target, dir, name);
}

void forget(fuse_req_t request, fuse_ino_t, uint64_t) {
  fuse_reply_none(request);
}
void forget_multi(fuse_req_t request, size_t, fuse_forget_data*) {
  fuse_reply_none(request);
}

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops ops{};
  ops.init = op_init;
  ops.lookup = Either<op_lookup, draft_lookup>::call;
  ops.forget = forget;  // node ids need no state, so lookups are not counted
  ops.forget_multi = forget_multi;
  ops.getattr = Either<op_getattr, draft_getattr>::call;
  ops.access = Either<op_access, draft_access>::call;
  ops.readlink = Either<op_readlink, draft_readlink>::call;
  ops.statfs = Either<op_statfs, draft_statfs>::call;
  ops.open = Either<op_open, draft_open>::call;
  ops.release = Either<op_release, draft_release>::call;
  ops.read = Answer<op_read>::call;
  ops.poll = Answer<op_poll>::call;
  ops.lseek = Either<op_lseek, draft_lseek>::call;
  ops.opendir = Answer<op_opendir>::call;
  ops.readdir = Either<op_readdir, draft_readdir>::call;
  ops.readdirplus = Either<op_readdirplus, draft_readdirplus>::call;
  ops.getxattr = Answer<op_getxattr>::call;
  ops.listxattr = Answer<op_listxattr>::call;

  ops.setattr = Draft<draft_setattr>::call;
  ops.mkdir = Either<announced_mkdir, draft_mkdir>::call;
  ops.unlink = Either<announced_removal, draft_unlink>::call;
  ops.rmdir = Either<announced_removal, draft_rmdir>::call;
  ops.symlink = Answer<symlink>::call;
  ops.rename = Either<announced_rename, draft_rename>::call;
  ops.create = Draft<draft_create>::call;
  ops.write = Draft<draft_write>::call;
  ops.fsync = Draft<draft_fsync>::call;
  ops.fsyncdir = Draft<draft_fsyncdir>::call;
  ops.fallocate = Draft<draft_fallocate>::call;
  ops.mknod = Draft<refused<EPERM, const char*, mode_t, dev_t>>::call;
  ops.link = Draft<draft_link>::call;
  ops.setxattr = Draft<refused<EOPNOTSUPP, const char*, const char*, size_t, int>>::call;
  ops.removexattr = Draft<refused<EOPNOTSUPP, const char*>>::call;
  return ops;
}

}  // namespace

const fuse_lowlevel_ops kOperations = make_operations();

}  // namespace weft
