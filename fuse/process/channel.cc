#include "fuse/process/channel.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace weft {
namespace {

constexpr std::size_t kMessageMax = 4096;

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
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof device)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (device >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof device);
    std::memcpy(CMSG_DATA(header), &device, sizeof device);
  }
  if (::sendmsg(channel, &message, MSG_NOSIGNAL) < 0) return sys_error(errno, "a message to the other process");
  return {};
}

Result<std::optional<Message>> hear(int channel) {
  std::array<char, kMessageMax> bytes{};
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  do got = ::recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0 && errno != ECONNRESET) return sys_error(errno, "a message from the other process");
  if (got <= 0) return std::optional<Message>();
  Message out{static_cast<Say>(bytes[0]), std::string(bytes.data() + 1, static_cast<std::size_t>(got) - 1), Fd()};
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int device = -1;
    std::memcpy(&device, CMSG_DATA(header), sizeof device);
    out.device = Fd(device);
  }
  return std::optional<Message>(std::move(out));
}

}  // namespace weft
