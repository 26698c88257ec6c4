#include "cli/shared/upgrade.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "os/sys.h"

namespace weft {
namespace {

constexpr timeval kPatience{90, 0};  // longer than the supervisor waits for the new program
constexpr std::string_view kDone = ".";

Result<Fd> connect_to(const std::string& control) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (control.empty() || control.size() >= sizeof address.sun_path)
    return Error{Errc::unsupported, "this mount's supervisor takes no upgrades"};
  std::copy(control.begin(), control.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + control.size());
  if (!socket.valid() || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return sys_error(errno, "asking the mount's supervisor");
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  return socket;
}

}  // namespace

Status ask_for_upgrade(const std::string& control, const std::string& program) {
  WEFT_TRY(const Fd socket, connect_to(control));
  if (::send(socket.get(), program.data(), program.size(), MSG_NOSIGNAL) < 0)
    return sys_error(errno, "asking the mount's supervisor");
  std::array<char, 4096> answer{};
  const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), 0);
  if (got < 0) return sys_error(errno, "the answer of the mount's supervisor");
  if (got == 0) return Error{Errc::internal, "the mount's supervisor ended without an answer"};
  const std::string text(answer.data(), static_cast<std::size_t>(got));
  if (text == kDone) return {};
  return Error{Errc::invalid, text};
}

}  // namespace weft
