#include "daemon/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>

#include "os/sys.h"

namespace weft {

void notify(const std::string& socket, std::string_view state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof address.sun_path) return;
  std::copy(socket.begin(), socket.end(), address.sun_path);
  if (socket.front() == '@') address.sun_path[0] = '\0';  // abstract socket
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace weft
