// An open session and the way to its other end. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "net/calls/call_messages.h"
#include "net/session/session.h"
#include "weft/deadline.h"
#include "weft/transport.h"

namespace weft::net {

// Sends a frame as soon as the transport takes it. Errc::timed_out.
Status send_frame(Transport& transport, PeerId peer, std::span<const std::byte> frame, Deadline deadline);

// What came of a frame: after `closed`, by the other end, and `refused`, the session is over.
enum class Heard : std::uint8_t { good, closed, refused };

class Channel {
 public:
  // `peer` is this channel's own, and removed with it. `transport` outlives it.
  Channel(Transport& transport, PeerId peer, Session session)
      : transport_(transport), peer_(peer), number_(session.ends().ours), session_(std::move(session)) {}
  ~Channel() { transport_.remove_peer(peer_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const std::string& node() const { return session_.ends().node; }  // theirs, proved
  std::uint64_t number() const { return number_; }                  // that frames to us name
  PeerId peer() const { return peer_; }
  Transport& transport() const { return transport_; }

  // Errc::busy while too much is unsent.
  Status send(const CallBody& body) { return send(FrameKind::message, encode_body(body)); }
  Status send(const CallBody& body, Deadline deadline);
  void say_close() { static_cast<void>(send(FrameKind::close, {})); }

  // The payload of a frame that names this session. Errc::permission.
  Result<std::vector<std::byte>> open(const FrameView& frame);

 private:
  Status send(FrameKind kind, std::span<const std::byte> payload);

  Transport& transport_;
  const PeerId peer_;
  const std::uint64_t number_;
  std::mutex mutex_;  // what is sealed first is sent first: counters grow on the way
  Session session_;   // guarded by mutex_, but for its ends
};

}  // namespace weft::net
