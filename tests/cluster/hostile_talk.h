// A session of a holder of the cluster's key with a daemon, frame by frame. It has none of the means by which a daemon
// keeps a session alive.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "hostile_frames.h"
#include "net/calls/call_messages.h"
#include "net/session/handshake.h"
#include "weft/cluster/transport.h"
#include "weft/result.h"

namespace weft::hostile {

Error silence();  // Errc::timed_out: the daemon says nothing

// A transport to one daemon, and the frames received from it in order. Any thread, after open().
class Line {
 public:
  Status open(const Victim& victim);
  const EndpointAddress& address() const { return transport_->address(); }
  Status say(std::span<const std::byte> frame);
  std::optional<Frame> next(std::chrono::milliseconds patience);
  std::size_t heard() const;  // frames received so far

 private:
  void hear(std::span<const std::byte> message);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Frame> frames_;  // guarded by mutex_
  std::size_t heard_ = 0;     // guarded by mutex_
  PeerId peer_{};
  std::unique_ptr<Transport> transport_;  // its thread calls hear(), so it ends first
};

// One end of a session. Several may share a line, if each has another node and number, and open() of all comes before
// the first message. One thread at a time.
class Talk {
 public:
  explicit Talk(Line& line, std::string node = "talker", std::uint64_t number = 1)
      : line_(line), node_(std::move(node)), number_(number) {}
  Status open(const net::Secret& key);
  Result<Frame> sealed(const net::CallBody& body) { return sealed(net::encode_body(body)); }
  Result<Frame> sealed(std::span<const std::byte> payload) { return session_->seal(net::FrameKind::message, payload); }
  Status say(std::span<const std::byte> frame) { return line_.say(frame); }
  Status say(const net::CallBody& body);
  // Returns the message in a frame of this session.
  Result<net::CallBody> opened(const net::FrameView& frame);
  // Returns the kind of the next frame of this session; nothing if none comes.
  Result<std::optional<net::FrameKind>> heard(std::chrono::milliseconds patience);
  // Sends a question about a call, which every daemon answers in an open session.
  Result<Frame> ask();

 private:
  Line& line_;
  const std::string node_;
  const std::uint64_t number_;
  std::optional<net::Session> session_;
  std::uint64_t asked_ = 0;
};

}  // namespace weft::hostile
