#include "net/transport/fabric.h"

#include <fmt/core.h>
#include <rdma/fi_errno.h>

namespace weft::net {
namespace {

Errc errc_of_fabric(int number) {
  switch (number) {
    case FI_EACCES:
    case FI_EPERM:
    case FI_EKEYREJECTED:
    case FI_ENOKEY:
    case FI_EFAULT:
    case FI_EREMOTEIO:
      return Errc::permission;
    case FI_ENOSYS:
    case FI_ENODATA:  // fi_getinfo found no provider that fits
    case FI_EOPNOTSUPP:
      return Errc::unsupported;
    case FI_EINVAL:
      return Errc::invalid;
    case FI_EAGAIN:
    case FI_EBUSY:
    case FI_EADDRINUSE:
      return Errc::busy;
    case FI_ETIMEDOUT:
      return Errc::timed_out;
    case FI_ECANCELED:
    case FI_ECONNREFUSED:
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_EHOSTUNREACH:
    case FI_EHOSTDOWN:
    case FI_ENETUNREACH:
    case FI_ENETDOWN:
      return Errc::unreachable;
    default:
      return Errc::io;
  }
}

}  // namespace

Error fabric_error(long code, std::string_view what) {
  const int number = static_cast<int>(code < 0 ? -code : code);
  return {errc_of_fabric(number), fmt::format("{}: {}", what, fi_strerror(number))};
}

}  // namespace weft::net
