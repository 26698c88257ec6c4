#include "os/lookups/own_address.h"

#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "os/sys.h"

namespace weft {
namespace {

Error refused(int error_number, const std::string& host, std::uint16_t port) {
  const std::string at = printable(host);
  if (error_number == EADDRNOTAVAIL)
    return {Errc::invalid, fmt::format("no interface of this machine has the address {}", at)};
  if (error_number == EADDRINUSE) return {Errc::busy, fmt::format("another program has port {} at {}", port, at)};
  return sys_error(error_number, fmt::format("binding port {} at {}", port, at));
}

Status bind_once(const addrinfo& address, const std::string& host, std::uint16_t port) {
  const Fd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return refused(errno, host, port);
  const int on = 1;  // connections of an earlier program that have ended do not count
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return {};
  return refused(errno, host, port);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<Addresses> addresses_of(const std::string& host, std::uint16_t port, int socket_type, int flags) {
  addrinfo hints{};
  hints.ai_socktype = socket_type;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); failed != 0)
    return Error{Errc::invalid, fmt::format("the host {} has no address: {}", printable(host), ::gai_strerror(failed))};
  return Addresses(found, ::freeaddrinfo);
}

std::string digits_of(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int failed = ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text.data() : "";
}

// Connects a UDP socket, which chooses the interface by the routing table and sends nothing.
Result<std::string> local_end_towards(const addrinfo& address, const std::string& host) {
  const Fd fd(::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (!fd.valid() || ::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return Error{Errc::unreachable, sys_error(errno, fmt::format("the host {}", printable(host))).message};
  return digits_of(reinterpret_cast<const sockaddr*>(&own), size);
}

// Returns the IPv4 addresses of interfaces that are up, without the loopback.
std::vector<std::string> outer_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, ::freeifaddrs);
  std::vector<std::string> out;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const bool is_outer = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (is_outer && one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET)
      out.push_back(digits_of(one->ifa_addr, sizeof(sockaddr_in)));
  }
  return out;
}

constexpr std::string_view kFarAddress =
    "192.0.2.1";  // of a network for documentation: only a default route leads there
constexpr std::uint16_t kAnyPort = 9;

}  // namespace

Status check_own_address(const std::string& host, std::uint16_t port) {
  WEFT_TRY(const Addresses found, addresses_of(host, port, SOCK_STREAM, AI_PASSIVE));
  Status last;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next)
    if (last = bind_once(*one, host, port); last.ok()) return {};
  return last;
}

Result<std::string> own_address_towards(const std::string& host, std::uint16_t port) {
  WEFT_TRY(const Addresses found, addresses_of(host, port, SOCK_DGRAM, 0));
  Result<std::string> last = Error{Errc::invalid, fmt::format("the host {} has no address", printable(host))};
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next)
    if (last = local_end_towards(*one, host); last.ok()) return last;
  return last;
}

Result<std::string> own_main_address() {
  if (auto routed = own_address_towards(std::string(kFarAddress), kAnyPort); routed.ok()) return routed;
  const auto outer = outer_addresses();
  if (outer.size() == 1) return outer.front();
  return Error{Errc::not_found, fmt::format("expected a default route, or one interface beside the loopback, got {}",
                                            outer.empty() ? "none" : "several")};
}

}  // namespace weft
