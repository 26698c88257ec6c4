#include "fuse/ops/ops.h"

#include <cerrno>
#include <new>

#include "base/log.h"
#include "fuse/kernel/errors.h"

namespace weft {
namespace {

void reply_error(fuse_req_t request, const Error& error) {
  if (is_fault(error.code)) log_warning("{}", error.message);
  fuse_reply_err(request, errno_of(error.code));
}

// A C callback around an operation: failures and exceptions become error replies. Operations do not throw after they
// have replied.
template <auto Operation>
struct Answer;

template <class... Args, Status (*Operation)(Server&, fuse_req_t, Args...)>
struct Answer<Operation> {
  static void call(fuse_req_t request, Args... args) {
    try {
      const Status status = Operation(*static_cast<Server*>(fuse_req_userdata(request)), request, args...);
      if (!status.ok()) reply_error(request, status.error());
    } catch (const std::bad_alloc&) {
      fuse_reply_err(request, ENOMEM);
    } catch (const std::exception& failure) {
      reply_error(request, Error{Errc::internal, failure.what()});
    }
  }
};

template <class... Args>
void refuse(fuse_req_t request, Args...) {
  fuse_reply_err(request, EROFS);
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
  ops.lookup = Answer<op_lookup>::call;
  ops.forget = forget;  // inode numbers say by themselves what they are: nothing is counted
  ops.forget_multi = forget_multi;
  ops.getattr = Answer<op_getattr>::call;
  ops.access = Answer<op_access>::call;
  ops.readlink = Answer<op_readlink>::call;
  ops.statfs = Answer<op_statfs>::call;
  ops.open = Answer<op_open>::call;
  ops.release = Answer<op_release>::call;
  ops.read = Answer<op_read>::call;
  ops.lseek = Answer<op_lseek>::call;
  ops.opendir = Answer<op_opendir>::call;
  ops.readdir = Answer<op_readdir>::call;
  ops.readdirplus = Answer<op_readdirplus>::call;
  ops.getxattr = Answer<op_getxattr>::call;
  ops.listxattr = Answer<op_listxattr>::call;

  ops.setattr = refuse;
  ops.mknod = refuse;
  ops.mkdir = refuse;
  ops.unlink = refuse;
  ops.rmdir = refuse;
  ops.symlink = refuse;
  ops.rename = refuse;
  ops.link = refuse;
  ops.write = refuse;
  ops.create = refuse;
  ops.fallocate = refuse;
  ops.setxattr = refuse;
  ops.removexattr = refuse;
  return ops;
}

}  // namespace

const fuse_lowlevel_ops kOperations = make_operations();

}  // namespace weft
