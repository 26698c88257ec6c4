#include "fuse/process/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <span>

#include "os/unix_socket.h"

namespace weft {
namespace {

constexpr std::size_t kMessageMax = 4096;
constexpr std::chrono::milliseconds kForEver{-1};

}  // namespace

Result<ChannelEnds> make_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return sys_error(errno, "a channel between supervisor and server");
  return ChannelEnds{Fd(ends[0]), Fd(ends[1])};
}

Status say(int channel, Say what, std::string_view text, int device) {
  std::string bytes(1, static_cast<char>(what));
  bytes += text.substr(0, kMessageMax - 1);
  const std::span<const int> fds(&device, device >= 0 ? 1 : 0);
  const auto sent = send_some(channel, std::as_bytes(std::span(bytes)), fds);
  if (!sent.ok()) return Error{sent.error().code, "a message to the other process: " + sent.error().message};
  if (*sent == 0) return Error{Errc::busy, "a message to the other process: it takes none"};
  return {};
}

Result<std::optional<Message>> hear(int channel) {
  std::array<char, kMessageMax> bytes{};
  Received received;
  do {
    wait_for(channel, POLLIN, kForEver);
    auto got = receive_some(channel, std::as_writable_bytes(std::span(bytes)));
    if (!got.ok()) return Error{got.error().code, "a message from the other process: " + got.error().message};
    received = std::move(got).value();
  } while (received.later);
  if (received.end) return std::optional<Message>();
  Message out{static_cast<Say>(bytes[0]), std::string(bytes.data() + 1, received.bytes - 1), Fd()};
  if (!received.fds.empty()) out.device = std::move(received.fds.front());
  return std::optional<Message>(std::move(out));
}

}  // namespace weft
