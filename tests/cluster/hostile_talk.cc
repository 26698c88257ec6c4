#include "hostile_talk.h"

#include <utility>

#include "net/calls/channel.h"

namespace weft::hostile {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 10s;

}  // namespace

Error silence() {
  return {Errc::timed_out, "the daemon says nothing"};
}

Status Line::open(const Victim& victim) {
  WEFT_TRY(transport_, open_fabric_transport({victim.provider, victim.host, 0, [this](auto frame) { hear(frame); }}));
  WEFT_TRY(peer_, transport_->add_peer(victim.peer.address));
  return {};
}

void Line::hear(std::span<const std::byte> message) {
  {
    const std::lock_guard lock(mutex_);
    frames_.emplace_back(message.begin(), message.end());
    ++heard_;
  }
  wake_.notify_all();
}

Status Line::say(std::span<const std::byte> frame) {
  return net::send_frame(*transport_, peer_, frame, deadline_in(kPatience));
}

std::optional<Frame> Line::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!wake_.wait_for(lock, patience, [this] { return !frames_.empty(); })) return std::nullopt;
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

std::size_t Line::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
}

Status Talk::open(const net::Secret& key) {
  const net::Caller caller({net::KeyRing(key), node_, line_.address(), number_});
  WEFT_CHECK(line_.say(caller.hello()));
  const auto welcome = line_.next(kPatience);
  if (!welcome) return silence();
  WEFT_TRY(const net::FrameView frame, net::parse_frame(*welcome));
  WEFT_TRY(net::Caller::Agreed agreed, caller.welcomed(frame));
  session_.emplace(std::move(agreed.session));
  return line_.say(agreed.confirm);
}

Status Talk::say(const net::CallBody& body) {
  WEFT_TRY(const Frame frame, sealed(body));
  return line_.say(frame);
}

Result<net::CallBody> Talk::opened(const net::FrameView& frame) {
  WEFT_TRY(const auto payload, session_->open(frame));
  return net::decode_body(payload);
}

Result<std::optional<net::FrameKind>> Talk::heard(std::chrono::milliseconds patience) {
  const auto next = line_.next(patience);
  if (!next) return std::optional<net::FrameKind>();
  WEFT_TRY(const net::FrameView frame, net::parse_frame(*next));
  WEFT_TRY(const auto payload, session_->open(frame));
  static_cast<void>(payload);
  return std::optional(frame.header.kind);
}

Result<Frame> Talk::ask() {
  WEFT_TRY(Frame question, sealed(net::AskMessage{++asked_}));
  WEFT_CHECK(line_.say(question));
  return question;
}

}  // namespace weft::hostile
