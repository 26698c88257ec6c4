// Stream sockets as Results. Unix sockets: listen, connect, identify the peer, send and receive bytes with descriptors.
// TCP sockets: listen, and end a connection. Sockets made here are non-blocking and close-on-exec.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kFdsAtOnceMax = 64;  // descriptors per send; Linux allows 253

// The peer of a connection, according to the kernel.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary groups
};

// The owner rule of beneath.h holds in the directory of `path`: the socket belongs to the directory's owner, and the
// listening process runs as that user or as root. `path` may be of any length and must contain a directory.

// Replaces a socket that has no listener: the caller holds the lock that proves this.
Result<Fd> listen_unix(const std::string& path, mode_t mode);
Status remove_unix(const std::string& path);  // the name; fine if it is absent
// Errc::not_found: no such socket; Errc::corrupt: not a socket, or the socket or the daemon is another user's;
// Errc::unreachable: no process listens; Errc::permission.
Result<Fd> connect_unix(const std::string& path);
// For listeners of both kinds. Returns an invalid Fd if no connection is pending.
Result<Fd> accept_socket(int listener);
Result<PeerCredentials> peer_credentials(int socket);

// Sends as much as fits without waiting, and returns the number of bytes: 0 if the socket is full. Descriptors (at most
// kFdsAtOnceMax) go with the first byte, so they are sent if any byte is. Errc::unreachable: the other end is closed.
Result<std::size_t> send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds = {});

struct Received {
  std::size_t bytes = 0;
  std::vector<Fd> fds;
  bool end = false;    // the other end has closed
  bool later = false;  // no bytes are there yet
};
// Errc::invalid if more than kFdsAtOnceMax descriptors arrive at once.
Result<Received> receive_some(int socket, std::span<std::byte> into);

// poll(2) on one descriptor; false on a timeout. A negative timeout waits for ever.
bool wait_for(int fd, short events, std::chrono::milliseconds timeout);
// poll(2) on several descriptors, whose `revents` the caller has cleared. A signal ends the wait as a timeout does.
void wait_for(std::span<pollfd> entries, std::chrono::milliseconds timeout);

// Listens on a TCP port. `address` is an IPv4 or IPv6 address in digits, else Errc::invalid. Port 0: a free port.
Result<Fd> listen_tcp(const std::string& address, std::uint16_t port, int backlog, std::string_view where);
Result<std::uint16_t> bound_port(int listener, std::string_view where);
// The bytes that the other end of a TCP connection has acknowledged so far; 0 if the kernel does not count them.
std::uint64_t bytes_acknowledged(int socket);
// The bytes that this end has written so far, also those that the other end has not acknowledged; 0 as above.
std::uint64_t bytes_written(int socket);
// Ends a connection in both directions and wakes the threads that wait for it. The descriptor stays open.
void hang_up(int socket);

}  // namespace weft
