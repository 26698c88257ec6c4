#include "fuse/process/upgrade_door.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>

#include "base/log.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

constexpr timeval kPatience{1, 0};  // for a client that connects and sends nothing

bool may_enter(int client) {
  const auto who = peer_credentials(client);
  return who.ok() && (who->uid == 0 || who->uid == ::geteuid());
}

}  // namespace

// Without a name in the address, the kernel picks a free one.
Result<UpgradeDoor> UpgradeDoor::make() {
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!listener.valid() ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address.sun_family) != 0 ||
      ::listen(listener.get(), 4) != 0)
    return sys_error(errno, "a socket for upgrades");
  return UpgradeDoor(std::move(listener));
}

Result<std::string> UpgradeDoor::name() const {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return sys_error(errno, "the name of the socket for upgrades");
  const std::size_t head = offsetof(sockaddr_un, sun_path) + 1;
  return size <= head ? std::string() : std::string(address.sun_path + 1, size - head);
}

std::optional<UpgradeRequest> UpgradeDoor::answer() const {
  Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client.valid()) return std::nullopt;
  if (!may_enter(client.get())) {
    reply_upgrade(client.get(), "only root and the user who mounted may do this");
    return std::nullopt;
  }
  ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  std::array<char, PATH_MAX> path{};
  const ssize_t got = ::recv(client.get(), path.data(), path.size(), 0);
  if (got <= 0 || path[0] != '/') return std::nullopt;
  return UpgradeRequest{{path.data(), static_cast<std::size_t>(got)}, std::move(client)};
}

void reply_upgrade(int client, std::string_view problem) {
  // An empty message would look like the end of the connection, so success is ".".
  const std::string_view text = problem.empty() ? std::string_view(".") : problem;
  if (::send(client, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    log_warning("the program that asked for the upgrade has ended");
}

}  // namespace weft
