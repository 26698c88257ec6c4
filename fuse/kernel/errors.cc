#include "fuse/kernel/errors.h"

#include <cerrno>

namespace weft {

int errno_of(Errc code) {
  switch (code) {
    case Errc::invalid:
      return EINVAL;
    case Errc::not_found:
      return ENOENT;
    case Errc::exists:
      return EEXIST;
    case Errc::permission:
      return EACCES;
    case Errc::no_space:
      return ENOSPC;
    case Errc::busy:
      return EBUSY;
    case Errc::corrupt:
    case Errc::io:
    case Errc::absent:
    case Errc::internal:
      return EIO;
    case Errc::unsupported:
      return EOPNOTSUPP;
    case Errc::changed:
      return ESTALE;
    case Errc::cancelled:
      return EINTR;
    case Errc::read_only:
      return EROFS;
    case Errc::is_dir:
      return EISDIR;
    case Errc::not_dir:
      return ENOTDIR;
    case Errc::timed_out:
      return ETIMEDOUT;
    case Errc::unreachable:
      return EHOSTUNREACH;
  }
  return EIO;
}

int errno_of(const Error& error) {
  return error.os_error != 0 ? error.os_error : errno_of(error.code);
}

bool is_fault(Errc code) {
  return errno_of(code) == EIO || code == Errc::unsupported || code == Errc::busy;
}

}  // namespace weft
