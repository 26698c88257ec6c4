// Two connected Unix stream sockets, as os/unix_socket.h has them: non-blocking and close-on-exec.
#pragma once

#include <sys/socket.h>

#include <stdexcept>
#include <utility>

#include "os/sys.h"

namespace weft::testing {

inline std::pair<Fd, Fd> socket_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    throw std::runtime_error("no pair of sockets");
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace weft::testing
