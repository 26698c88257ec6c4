// Handshakes that other nodes start: hello, welcome, confirm.
#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "net/calls/incoming.h"
#include "net/calls/outgoing.h"
#include "net/session/handshake_messages.h"
#include "weft/deadline.h"

namespace weft::net {
namespace {

// How long a handshake may stay half open. A caller that holds the key gets more time, for a slow link.
constexpr std::chrono::milliseconds kHalfOpenFor{1'000};
constexpr std::chrono::milliseconds kProvedHalfOpenFor = kSilenceMax / 2;

std::size_t half_open_max(bool proved) {
  return proved ? limits::kPeerNewcomersMax : limits::kPeerHalfOpenMax;
}

}  // namespace

// Queues a hello for the keeper thread: the reply takes two multiplications on a curve, too long for the transport's
// thread.
bool Incoming::queue_hello(const FrameView& frame) {
  Hello hello{frame.bytes(), is_proved(identity_.cluster_key, frame)};
  const std::size_t waiting_max = hello.proved ? limits::kPeerHellosMax : limits::kPeerStrangersMax;
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || hellos_.size() >= waiting_max) return false;
    hellos_.push_back(std::move(hello));
  }
  wake_.notify_all();
  return true;
}

void Incoming::welcome(const Hello& hello) {
  const auto refuse = [this] { ++unkept_; };
  const auto frame = parse_frame(hello.frame);
  if (!frame.ok()) return refuse();
  if (hello.proved && welcome_again(*frame)) return;
  const std::uint64_t session = random_session();
  auto answerer = Answerer::answer(identity_.with_session(session), *frame);
  if (!answerer.ok() || !admits(answerer->caller_address(), hello.proved)) return refuse();
  const auto peer = transport_.add_peer(answerer->caller_address());
  if (!peer.ok()) return refuse();
  if (const auto from = decode_hello(frame->payload); from.ok()) log_refusal(from->node, hello.proved, *answerer);
  const std::vector<std::byte> welcome = answerer->welcome();
  const auto until = Clock::now() + (hello.proved ? kProvedHalfOpenFor : kHalfOpenFor);
  add_half_open(session,
                {std::move(*answerer), *peer, until, hello.proved, {frame->tag.begin(), frame->tag.end()}, welcome});
  static_cast<void>(transport_.send(*peer, welcome));
}

// Another version may prove its hellos in another way.
void Incoming::log_refusal(const std::string& node, bool proved, const Answerer& answerer) {
  const Status& accepted = answerer.accepted();
  if ((proved && accepted.ok()) || !refusal_lines_.due(node)) return;
  if (!accepted.ok()) return log_warning("{}: it is refused", accepted.error().message);
  log_warning("a daemon that calls itself peer {} does not hold this node's key of the cluster: it is refused",
              printable(node));
}

// True if this hello was answered already. Sends the same welcome again.
bool Incoming::welcome_again(const FrameView& hello) {
  const std::lock_guard lock(mutex_);
  for (const auto& [session, half] : half_open_)
    if (half.proved && std::ranges::equal(half.hello_tag, hello.tag)) {
      static_cast<void>(transport_.send(half.peer, half.welcome));
      return true;
    }
  return false;
}

// True if a hello may be answered. An unproved hello never displaces another handshake.
bool Incoming::admits(const EndpointAddress& address, bool proved) {
  const std::lock_guard lock(mutex_);
  return (proved || count_half_open(false) < half_open_max(false)) && newcomers_.admit(address, proved);
}

std::size_t Incoming::count_half_open(bool proved) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(half_open_, [proved](const auto& one) { return one.second.proved == proved; }));
}

// Adds a half-open handshake. If there are too many, drops the oldest. So strangers lock out other callers only during
// a flood.
void Incoming::add_half_open(std::uint64_t session, HalfOpen half) {
  std::optional<PeerId> pushed_out;
  {
    const std::lock_guard lock(mutex_);
    if (count_half_open(half.proved) >= half_open_max(half.proved)) {
      const auto is_older = [proved = half.proved](const auto& a, const auto& b) {
        if (a.second.proved != b.second.proved) return a.second.proved == proved;
        return a.second.until < b.second.until;
      };
      const auto oldest = std::ranges::min_element(half_open_, is_older);
      pushed_out = oldest->second.peer;
      half_open_.erase(oldest);
    }
    half_open_.emplace(session, std::move(half));
  }
  if (!pushed_out) return;
  ++unkept_;
  transport_.remove_peer(*pushed_out);
}

bool Incoming::confirm(const FrameView& frame) {
  std::optional<HalfOpen> half;
  {
    const std::lock_guard lock(mutex_);
    auto found = half_open_.extract(frame.header.session);
    if (found.empty() || ending_) return false;
    half.emplace(std::move(found.mapped()));
  }
  auto session = half->answerer.confirmed(frame);
  if (!session.ok() || session->ends().node == identity_.node) {
    transport_.remove_peer(half->peer);
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    newcomers_.authenticated(session->ends().address);
  }
  add_session(std::move(*session), half->peer);
  ++handshakes_;
  return true;
}

// Adds a session. It replaces the node's previous session, which the node has lost. If there are too many sessions, the
// least recently used one ends.
void Incoming::add_session(Session session, PeerId peer) {
  auto link = std::make_shared<AnswerLink>(transport_, peer, std::move(session));
  LinkPtr before;
  LinkPtr unused;
  {
    const std::lock_guard lock(mutex_);
    const auto known = session_of_.find(link->channel().node());
    if (known != session_of_.end()) {
      before = links_.at(known->second);
    } else if (links_.size() >= limits::kPeerSessionsMax) {
      unused = std::min_element(links_.begin(), links_.end(), [](const auto& a, const auto& b) {
                 return a.second->used() < b.second->used();
               })->second;
    }
  }
  if (before) end(before);
  if (unused) end(unused);
  const std::lock_guard lock(mutex_);
  if (ending_) return;
  session_of_[link->channel().node()] = link->channel().number();
  links_[link->channel().number()] = std::move(link);
}

void Incoming::end(const LinkPtr& link) {
  {
    const std::lock_guard lock(mutex_);
    if (links_.erase(link->channel().number()) == 0) return;
    session_of_.erase(link->channel().node());
  }
  link->channel().say_close();
  bool any_pending = false;
  for (AnswerLink::Ended& ended : link->end_all()) {
    any_pending = any_pending || ended.was_pending;
    windows_.withdraw(std::move(ended.kept.windows));
    report_ended(std::move(ended.kept), 0);
  }
  if (any_pending) report_unwanted(link->channel().node());
}

}  // namespace weft::net
