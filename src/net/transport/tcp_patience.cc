#include "net/transport/tcp_patience.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

namespace weft::net {
namespace {

constexpr int kPatienceMs = std::chrono::milliseconds(kTcpPatience).count();
constexpr int kIdleSeconds = kTcpPatience.count() / 2;  // then the peer is asked whether it is there
constexpr int kAskAgainSeconds = 2;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

std::optional<int> descriptor_of(const dirent& entry) {
  const std::string_view name(entry.d_name);
  int fd = -1;
  if (std::from_chars(name.data(), name.data() + name.size(), fd).ec != std::errc()) return std::nullopt;
  return fd;
}

bool same_host(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  const void* const one = &a;
  const void* const other = &b;
  if (a.ss_family == AF_INET)
    return static_cast<const sockaddr_in*>(one)->sin_addr.s_addr ==
           static_cast<const sockaddr_in*>(other)->sin_addr.s_addr;
  return a.ss_family == AF_INET6 &&
         std::memcmp(&static_cast<const sockaddr_in6*>(one)->sin6_addr,
                     &static_cast<const sockaddr_in6*>(other)->sin6_addr, sizeof(in6_addr)) == 0;
}

int option_of(int socket, int level, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  return ::getsockopt(socket, level, name, &value, &length) == 0 ? value : 0;
}

// Those of libfabric's tcp providers: bound to the endpoint's host, and to an address that may be taken again, which no
// other sockets of ours are. Whom it connects to is not to be learned of one that is still trying.
bool is_of_endpoint(int fd, const sockaddr_storage& own) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return false;
  return same_host(address, own) && option_of(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP &&
         option_of(fd, SOL_SOCKET, SO_REUSEADDR) != 0;
}

void bound(int socket) {
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kAskAgainSeconds);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kPatienceMs);
}

}  // namespace

void bound_tcp_patience(std::span<const std::byte> address) {
  sockaddr_storage own{};
  if (address.size() > sizeof own) return;
  std::memcpy(&own, address.data(), address.size());
  if (own.ss_family != AF_INET && own.ss_family != AF_INET6) return;
  const std::unique_ptr<DIR, CloseDirectory> descriptors(::opendir("/proc/self/fd"));
  if (!descriptors) return;
  while (const dirent* entry = ::readdir(descriptors.get())) {
    const auto fd = descriptor_of(*entry);
    if (fd && is_of_endpoint(*fd, own) && option_of(*fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == 0) bound(*fd);
  }
}

}  // namespace weft::net
