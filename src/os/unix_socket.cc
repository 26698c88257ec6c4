#include "os/unix_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/tcp.h>  // tcp_info with tcpi_bytes_acked, which that of <netinet/tcp.h> lacks
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "os/safe_path.h"

namespace weft {
namespace {

constexpr int kBacklog = 128;

struct TcpAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

Result<TcpAddress> tcp_address(const std::string& text, std::uint16_t port, std::string_view where) {
  TcpAddress address;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&address.bytes, &v4, address.size = sizeof v4);
  } else if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&address.bytes, &v6, address.size = sizeof v6);
  } else {
    return Error{Errc::invalid, fmt::format("{}: expected an IP address, got {}", where, printable(text))};
  }
  return address;
}

// Opens the directory of a socket and returns the path of the socket below it.
Result<SafePath> place_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return Error{Errc::invalid, fmt::format("{}: expected a directory", path)};
  WEFT_TRY(const SafePath directory, SafePath::open_owned(slash == 0 ? "/" : path.substr(0, slash)));
  return directory / path.substr(slash + 1);
}

// A socket address holds at most 107 bytes. `shown` leads through a descriptor, so that `path` may be of any length.
Result<sockaddr_un> address_of(const std::string& shown, std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (shown.size() >= sizeof address.sun_path)
    return Error{Errc::invalid, fmt::format("{}: expected a shorter name of a socket", path)};
  std::copy(shown.begin(), shown.end(), address.sun_path);
  return address;
}

// Sets the mode of a socket after bind(2) and before listen(2). chmod(2) and chown(2) by name could reach a file that
// another user put there. If that file is another socket of this process, it has a second name and is refused.
Status open_to(const SafePath& place, mode_t mode) {
  WEFT_TRY(const Fd made, place.root().open_made_socket(place.relative()));
  WEFT_TRY(const std::string path, path_of_descriptor(made.get(), place));
  if (::chmod(path.c_str(), mode) != 0) return sys_error(errno, fmt::format("{}: chmod", place));
  return {};
}

// The daemon's answers decide what this process does next, so a daemon of a third user is refused.
Status check_peer(int socket, const SafePath& place) {
  WEFT_TRY(const PeerCredentials peer, peer_credentials(socket));
  if (peer.uid == 0 || peer.uid == place.root().owner() || trusts_all_owners()) return {};
  return Error{Errc::corrupt, fmt::format("{}: expected a daemon of user {}, who owns the directory, or of root; got "
                                          "one of user {}",
                                          place, *place.root().owner(), peer.uid)};
}

Result<Fd> make_socket(const std::string& path) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return sys_error(errno, fmt::format("{}: socket", path));
  return fd;
}

const sockaddr* plain(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

Error gone(std::string_view what) {
  return Error{Errc::unreachable, fmt::format("{}: the other end is gone", what)};
}

// Space for the descriptors of one message, aligned as the kernel requires.
struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsAtOnceMax * sizeof(int))> bytes{};
};

Status take_fds(msghdr& message, std::vector<Fd>& into) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      into.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0)
    return Error{Errc::invalid, fmt::format("a message: expected at most {} descriptors at once", kFdsAtOnceMax)};
  return {};
}

}  // namespace

Result<Fd> listen_unix(const std::string& path, mode_t mode) {
  WEFT_TRY(const SafePath place, place_of(path));
  WEFT_TRY(const std::string directory, path_of_descriptor(place.root().fd(), path));
  WEFT_TRY(const sockaddr_un address, address_of(directory + "/" + place.relative(), path));
  WEFT_TRY(Fd fd, make_socket(path));
  WEFT_CHECK(remove_file(place));
  if (::bind(fd.get(), plain(address), sizeof address) != 0) return sys_error(errno, fmt::format("{}: bind", path));
  WEFT_CHECK(open_to(place, mode));
  if (::listen(fd.get(), kBacklog) != 0) return sys_error(errno, fmt::format("{}: listen", path));
  return fd;
}

Result<Fd> connect_unix(const std::string& path) {
  WEFT_TRY(const SafePath place, place_of(path));
  WEFT_TRY(const Fd there, place.root().open_socket(place.relative()));
  WEFT_TRY(const std::string shown, path_of_descriptor(there.get(), path));
  WEFT_TRY(const sockaddr_un address, address_of(shown, path));
  WEFT_TRY(Fd fd, make_socket(path));
  if (retry([&] { return ::connect(fd.get(), plain(address), sizeof address); }) == 0) {
    WEFT_CHECK(check_peer(fd.get(), place));
    return fd;
  }
  if (errno == ECONNREFUSED || would_block(errno))
    return Error{Errc::unreachable, fmt::format("{}: no process answers", path)};
  return sys_error(errno, path);
}

Status remove_unix(const std::string& path) {
  WEFT_TRY(const SafePath place, place_of(path));
  return remove_file(place);
}

Result<Fd> accept_socket(int listener) {
  int fd = retry([&] { return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
  if (fd >= 0) return Fd(fd);
  if (would_block(errno) || errno == ECONNABORTED) return Fd();
  return sys_error(errno, "accept");
}

Result<PeerCredentials> peer_credentials(int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return sys_error(errno, "SO_PEERCRED");
  PeerCredentials peer{who.pid, who.uid, who.gid, {}};
  socklen_t bytes = 0;
  // With an empty buffer, the kernel reports the size that it needs.
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, nullptr, &bytes) == 0 || errno != ERANGE) return peer;
  peer.groups.resize(bytes / sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &bytes) != 0)
    return sys_error(errno, "SO_PEERGROUPS");
  peer.groups.resize(bytes / sizeof(gid_t));
  return peer;
}

Result<std::size_t> send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kFdsAtOnceMax)
    return Error{Errc::internal, fmt::format("expected at most {} descriptors, got {}", kFdsAtOnceMax, fds.size())};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent = retry([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT); });
  if (sent >= 0) return static_cast<std::size_t>(sent);
  // ETOOMANYREFS: too many descriptors are in flight; the number falls as the receiver takes them.
  if (would_block(errno) || errno == ENOBUFS || errno == ETOOMANYREFS) return std::size_t{0};
  if (errno == EPIPE || errno == ECONNRESET) return gone("send");
  return sys_error(errno, "send");
}

Result<Received> receive_some(int socket, std::span<std::byte> into) {
  iovec part{into.data(), into.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t got = retry([&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT); });
  Received received;
  if (got < 0 && would_block(errno)) {
    received.later = true;
    return received;
  }
  if (got < 0 && errno != ECONNRESET) return sys_error(errno, "receive");
  if (got <= 0) {
    received.end = true;
    return received;
  }
  received.bytes = static_cast<std::size_t>(got);
  WEFT_CHECK(take_fds(message, received.fds));
  return received;
}

bool wait_for(int fd, short events, std::chrono::milliseconds timeout) {
  pollfd entry{fd, events, 0};
  return retry([&] { return ::poll(&entry, 1, static_cast<int>(timeout.count())); }) > 0;
}

void wait_for(std::span<pollfd> entries, std::chrono::milliseconds timeout) {
  ::poll(entries.data(), entries.size(), static_cast<int>(timeout.count()));
}

Result<Fd> listen_tcp(const std::string& address, std::uint16_t port, int backlog, std::string_view where) {
  WEFT_TRY(const TcpAddress bind_to, tcp_address(address, port, where));
  Fd fd(::socket(bind_to.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return sys_error(errno, where);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&bind_to.bytes), bind_to.size) != 0 ||
      ::listen(fd.get(), backlog) != 0)
    return sys_error(errno, where);
  return fd;
}

Result<std::uint16_t> bound_port(int listener, std::string_view where) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&bytes), &size) != 0) return sys_error(errno, where);
  in_port_t port = 0;
  const std::size_t at =
      bytes.ss_family == AF_INET6 ? offsetof(sockaddr_in6, sin6_port) : offsetof(sockaddr_in, sin_port);
  std::memcpy(&port, reinterpret_cast<const char*>(&bytes) + at, sizeof port);
  return ntohs(port);
}

namespace {

tcp_info tcp_info_of(int socket) {
  tcp_info info{};  // a field stays 0 if the kernel wrote less
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return info;
}

}  // namespace

std::uint64_t bytes_acknowledged(int socket) {
  return tcp_info_of(socket).tcpi_bytes_acked;
}

std::uint64_t bytes_written(int socket) {
  const tcp_info info = tcp_info_of(socket);
  return info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
}

void hang_up(int socket) {
  ::shutdown(socket, SHUT_RDWR);
}

}  // namespace weft
