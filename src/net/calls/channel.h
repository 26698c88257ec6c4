// A session, and the transport's peer that it talks to. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "net/calls/call_messages.h"
#include "net/session/session.h"
#include "weft/cluster/transport.h"
#include "weft/deadline.h"

namespace weft::net {

// Sends a frame as soon as the transport accepts it. Errc::timed_out at the deadline.
Status send_frame(Transport& transport, PeerId peer, std::span<const std::byte> frame, Deadline deadline);

// The result of a received frame. The session is over after `closed` (the other end closed it) and `refused` (invalid).
enum class Heard : std::uint8_t { good, closed, refused };

class Channel {
 public:
  // The channel owns `peer`, and removes it when it ends. `transport` outlives the channel.
  Channel(Transport& transport, PeerId peer, Session session)
      : transport_(transport), peer_(peer), number_(session.ends().ours), session_(std::move(session)) {}
  ~Channel() { transport_.remove_peer(peer_); }

  const std::string& node() const { return session_.ends().node; }  // the peer's, proved
  const Bytes32& key_id() const { return session_.ends().key_id; }  // of the cluster's key that both have proved
  std::uint64_t number() const { return number_; }                  // in frames to this node
  PeerId peer() const { return peer_; }
  Transport& transport() const { return transport_; }

  // Errc::busy if too many messages are unsent.
  Status send(const CallBody& body) { return send(FrameKind::message, encode_body(body)); }
  Status send(const CallBody& body, Deadline deadline);
  void say_close() { static_cast<void>(send(FrameKind::close, {})); }

  // Returns the payload of a frame that names this session. Errors as Session::open.
  Result<std::vector<std::byte>> open(const FrameView& frame);

 private:
  Status send(FrameKind kind, std::span<const std::byte> payload);

  Transport& transport_;
  const PeerId peer_;
  const std::uint64_t number_;
  std::mutex mutex_;  // frames are sent in the order of sealing, so counters grow
  Session session_;   // guarded by mutex_, except its ends
};

}  // namespace weft::net
