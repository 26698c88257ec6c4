#include "net/calls/channel.h"

#include <chrono>
#include <functional>
#include <thread>

namespace weft::net {
namespace {

// Calls `send` again while the transport has too many unsent messages.
Status until_taken(const std::function<Status()>& send, Deadline deadline) {
  constexpr std::chrono::milliseconds kPause{1};
  for (;;) {
    Status sent = send();
    if (sent.ok() || sent.error().code != Errc::busy) return sent;
    if (std::chrono::steady_clock::now() + kPause >= deadline)
      return Error{Errc::timed_out, "a message to a peer: not sent in time: " + sent.error().message};
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Status send_frame(Transport& transport, PeerId peer, std::span<const std::byte> frame, Deadline deadline) {
  return until_taken([&] { return transport.send(peer, frame); }, deadline);
}

Status Channel::send(const CallBody& body, Deadline deadline) {
  const std::vector<std::byte> payload = encode_body(body);
  return until_taken([&] { return send(FrameKind::message, payload); }, deadline);
}

Status Channel::send(FrameKind kind, std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  WEFT_TRY(const std::vector<std::byte> frame, session_.seal(kind, payload));
  return transport_.send(peer_, frame);
}

Result<std::vector<std::byte>> Channel::open(const FrameView& frame) {
  const std::lock_guard lock(mutex_);
  return session_.open(frame);
}

}  // namespace weft::net
