#include "os/lookups/own_address.h"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

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

}  // namespace

Status check_own_address(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); failed != 0)
    return Error{Errc::invalid, fmt::format("the host {} has no address: {}", printable(host), ::gai_strerror(failed))};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  Status last;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
    if (last = bind_once(*one, host, port); last.ok()) return {};
  return last;
}

}  // namespace weft
