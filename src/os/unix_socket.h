// Unix stream sockets as Results: listening, connecting, who is at the other end, bytes with descriptors. Sockets made
// here are non-blocking and close-on-exec.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kFdsAtOnceMax = 64;  // descriptors that one send carries; Linux takes 253

// Who made a connection, as the kernel tells it.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary ones
};

// The directory of `path` has the owner rule of beneath.h: the socket belongs to the directory's owner, and the process
// that listens there runs as that user or as root. Any length of path, which has a directory.

// Takes the place of a socket that nobody listens at any more: the caller holds the lock that says so.
Result<Fd> listen_unix(const std::string& path, mode_t mode);
Status remove_unix(const std::string& path);  // the name; fine when it is not there
// Errc::not_found: nothing there; Errc::corrupt: no socket, or one or a daemon of another user; Errc::unreachable:
// nobody listens; Errc::permission.
Result<Fd> connect_unix(const std::string& path);
// An invalid Fd when nobody waits.
Result<Fd> accept_unix(int listener);
Result<PeerCredentials> peer_credentials(int socket);
Result<std::pair<Fd, Fd>> unix_pair();

// What can be sent now: 0 when the socket is full. Descriptors (at most kFdsAtOnceMax) go with the first byte, so they
// are sent when anything was. Errc::unreachable: the other end is gone.
Result<std::size_t> send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds = {});

struct Received {
  std::size_t bytes = 0;
  std::vector<Fd> fds;
  bool end = false;    // the other end has closed
  bool later = false;  // nothing is there now
};
// Errc::invalid when more descriptors came than kFdsAtOnceMax.
Result<Received> receive_some(int socket, std::span<std::byte> into);

// poll(2) on one descriptor; false when the time is over first. Negative: for ever.
bool wait_for(int fd, short events, std::chrono::milliseconds timeout);

}  // namespace weft
