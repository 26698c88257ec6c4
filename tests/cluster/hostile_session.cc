#include "hostile_session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "net/calls/call_messages.h"
#include "net/calls/channel.h"
#include "net/session/handshake.h"
#include "testing.h"

namespace weft::hostile {
namespace {

using Clock = std::chrono::steady_clock;
using Frame = std::vector<std::byte>;
using namespace std::chrono_literals;

constexpr auto kPatience = 10s;
constexpr auto kSilence = 300ms;  // an answer would come within this time
constexpr std::array<std::string_view, 5> kSayings{"garbled", "truncated", "again", "nonsense", "backwards"};
constexpr std::uint64_t kOurSession = 1;

// Received frames in order.
class Ear {
 public:
  Transport::Receiver receiver() {
    return [this](std::span<const std::byte> message) {
      {
        const std::lock_guard lock(mutex_);
        heard_.emplace_back(message.begin(), message.end());
      }
      wake_.notify_all();
    };
  }
  std::optional<Frame> next(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, patience, [this] { return !heard_.empty(); })) return std::nullopt;
    Frame frame = std::move(heard_.front());
    heard_.pop_front();
    return frame;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Frame> heard_;  // guarded by mutex_
};

Error silence() {
  return {Errc::timed_out, "the daemon says nothing"};
}

// One end of a session, without the means by which a daemon keeps it alive.
class Talk {
 public:
  Status open(const Victim& victim, const net::Secret& key) {
    WEFT_TRY(transport_, open_fabric_transport({victim.provider, victim.host, 0, ear_.receiver()}));
    WEFT_TRY(peer_, transport_->add_peer(victim.peer.address));
    const net::Caller caller({key, "talker", transport_->address(), kOurSession});
    WEFT_CHECK(say(caller.hello()));
    const auto welcome = ear_.next(kPatience);
    if (!welcome) return silence();
    WEFT_TRY(const net::FrameView frame, net::parse_frame(*welcome));
    WEFT_TRY(net::Caller::Agreed agreed, caller.welcomed(frame));
    session_.emplace(std::move(agreed.session));
    return say(agreed.confirm);
  }
  Result<Frame> sealed(const net::CallBody& body) { return sealed(net::encode_body(body)); }
  Result<Frame> sealed(std::span<const std::byte> payload) { return session_->seal(net::FrameKind::message, payload); }
  Status say(std::span<const std::byte> frame) {
    return net::send_frame(*transport_, peer_, frame, deadline_in(kPatience));
  }
  // Returns the kind of the next frame of this session; nothing if none comes.
  Result<std::optional<net::FrameKind>> heard(std::chrono::milliseconds patience) {
    const auto next = ear_.next(patience);
    if (!next) return std::optional<net::FrameKind>();
    WEFT_TRY(const net::FrameView frame, net::parse_frame(*next));
    WEFT_TRY(const auto payload, session_->open(frame));
    static_cast<void>(payload);
    return std::optional(frame.header.kind);
  }
  // Sends a question about a call, which every daemon answers in an open session.
  Result<Frame> ask() {
    WEFT_TRY(Frame question, sealed(net::AskMessage{++asked_}));
    WEFT_CHECK(say(question));
    return question;
  }

 private:
  Ear ear_;  // outlives the transport, whose thread calls it
  std::unique_ptr<Transport> transport_;
  PeerId peer_{};
  std::optional<net::Session> session_;
  std::uint64_t asked_ = 0;
};

Result<Frame> saying(Talk& talk, const Frame& answered, std::string_view what) {
  if (what == "again") return answered;
  if (what == "nonsense") return talk.sealed(testing::random_bytes(256, 1));
  if (what == "backwards") return talk.sealed(net::KnownMessage{1, 1, net::CallState::in_work});
  WEFT_TRY(Frame frame, talk.sealed(net::AskMessage{99}));
  if (what == "truncated")
    frame.resize(frame.size() - 1);
  else
    frame.back() ^= std::byte{1};
  return frame;
}

}  // namespace

bool ends_a_session(std::string_view what) {
  return std::ranges::find(kSayings, what) != kSayings.end();
}

Result<Closed> close_session(const Victim& victim, const std::string& key_file, std::string_view what) {
  WEFT_TRY(const net::Secret key, net::read_cluster_key(key_file));
  Talk talk;
  WEFT_CHECK(talk.open(victim, key));
  WEFT_TRY(const Frame question, talk.ask());
  WEFT_TRY(const auto answer, talk.heard(kPatience));
  if (answer != net::FrameKind::message) return silence();
  WEFT_TRY(const Frame bad, saying(talk, question, what));
  Closed closed;
  const auto begin = Clock::now();
  WEFT_CHECK(talk.say(bad));
  for (;;) {
    WEFT_TRY(const auto kind, talk.heard(kPatience));
    if (!kind) return silence();
    if (*kind == net::FrameKind::close) break;
    ++closed.answers;
  }
  closed.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  WEFT_CHECK(talk.ask().ok() ? Status{} : Status{silence()});
  for (;;) {
    WEFT_TRY(const auto kind, talk.heard(kSilence));
    if (!kind) return closed;
    ++closed.answers;
  }
}

Status greet_with_another_key(const Victim& victim) {
  Talk talk;
  const Status opened = talk.open(victim, net::Secret(net::random_bytes()));
  if (opened.ok()) return Error{Errc::internal, "a session without the cluster's key"};
  if (opened.error().code != Errc::permission) return opened.error();
  return {};
}

}  // namespace weft::hostile
