#include "net/calls/outgoing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "net/calls/answer.h"

namespace weft::net {
namespace {

// A hello may be lost with a connection that just ended, so it is sent again. The pause doubles, because on a slow link
// the welcome may be on its way.
constexpr std::chrono::milliseconds kGreetAgainMin{500};
constexpr std::chrono::milliseconds kGreetAgainMax{4'000};
// Pause between checks for failed attempts; a line's shortest rest.
constexpr std::chrono::milliseconds kConnectPoll{100};
constexpr int kTries = 3;  // of a call whose sessions or requests are lost

}  // namespace

std::uint64_t random_session() {
  for (;;) {
    const Bytes32 random = random_bytes();
    std::uint64_t number = 0;
    std::memcpy(&number, random.data(), sizeof number);
    if (number != 0) return number;
  }
}

Error ended_error() {
  return {Errc::cancelled, "this node's exchange has ended"};
}

Result<std::unique_ptr<Answer>> Outgoing::call(const PeerAddress& peer, std::span<const std::byte> request,
                                               Deadline deadline, const OnSign& on_sign) {
  WEFT_CHECK(admit(peer, request));
  CallWait wait(Clock::now(), deadline, on_sign);
  for (int tries = 1;; ++tries) {
    WEFT_TRY(const std::shared_ptr<CallLink> link, link_to(peer, wait.deadline()));
    const Clock::time_point called = Clock::now();  // the lease of its windows began after this
    CallLink::Outcome outcome = link->call(request, wait);
    if (outcome.end == CallLink::End::answered) {
      wait.answered(Clock::now());
      return open_answer(link, std::move(outcome.answer), called, wait.deadline());
    }
    if (auto error = failed(link, std::move(outcome), tries, wait.deadline())) return *std::move(error);
  }
}

Status Outgoing::admit(const PeerAddress& peer, std::span<const std::byte> request) {
  if (request.size() > kRequestBytesMax)
    return Error{Errc::invalid,
                 fmt::format("a request: expected at most {} bytes, got {}", kRequestBytesMax, request.size())};
  if (peer.node == identity_.node) return Error{Errc::invalid, "a call: to this node itself"};
  ++calls_;
  return {};
}

std::optional<Error> Outgoing::failed(const std::shared_ptr<CallLink>& link, CallLink::Outcome outcome, int tries,
                                      Deadline deadline) {
  if (outcome.end == CallLink::End::failed) return std::move(outcome.error);
  if (outcome.end == CallLink::End::lost) drop(link);
  const std::string& node = link->channel().node();
  if (tries >= kTries || Clock::now() >= deadline)
    return Error{Errc::unreachable, fmt::format("peer {}: its sessions are lost as soon as they are made", node)};
  log_debug(LogCategory::net, "a call to peer {} is repeated: its session is stale, or the request was lost", node);
  return std::nullopt;
}

Error Outgoing::gone(const std::shared_ptr<CallLink>& link) {
  drop(link);
  return {Errc::unreachable, fmt::format("peer {}: no daemon listens there", link->channel().node())};
}

Result<std::unique_ptr<Answer>> Outgoing::open_answer(std::shared_ptr<CallLink> link, AnswerMessage message,
                                                      Deadline called, Deadline deadline) {
  const bool long_head = message.head_hash.has_value();
  auto answer = std::make_unique<OpenAnswer>(std::move(link), std::move(message), called);
  if (long_head) {
    WEFT_TRY(const LandingBuffer buffer, landings_->take(deadline));
    WEFT_CHECK(answer->fetch_head(buffer, deadline));
  }
  return std::unique_ptr<Answer>(std::move(answer));
}

Result<std::shared_ptr<CallLink>> Outgoing::link_to(const PeerAddress& address, Deadline deadline) {
  const Clock::time_point begun = Clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    const Peer& peer = peer_of(address);
    if (auto link = peer.open_to(address.address)) return link;
    if (ending_) return ended_error();
    if (!peer.connecting) break;
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout)
      return Error{Errc::timed_out, fmt::format("peer {}: no session in time", address.node)};
    const auto now = peers_.find(address.node);
    if (now == peers_.end()) continue;  // the entry was dropped: try again
    const Peer& known = now->second;
    if (!known.connecting && known.failed_at >= begun && known.address == address.address) return known.failure;
  }
  Peer& peer = peer_of(address);
  peer.address = address.address;
  peer.connecting = true;
  const auto old = std::exchange(peer.link, nullptr);
  lock.unlock();
  if (old) drop(old);  // lost, or the peer has another address
  auto made = connect(address, deadline);
  log_debug(LogCategory::net, "{}", made.ok() ? fmt::format("session to peer {}", address.node) : made.error().message);
  lock.lock();
  peer.connecting = false;
  peer.link = made.ok() ? *made : nullptr;
  if (!made.ok()) {
    peer.failed_at = Clock::now();
    peer.failure = made.error();
  }
  lock.unlock();
  changed_.notify_all();
  return made;
}

// Returns the entry of a peer, new or known. If the table is full, drops entries without a session. With mutex_ held.
Outgoing::Peer& Outgoing::peer_of(const PeerAddress& address) {
  if (peers_.size() >= limits::kPeerSessionsMax)
    std::erase_if(peers_, [](const auto& entry) { return !entry.second.link && !entry.second.connecting; });
  return peers_[address.node];
}

Result<std::shared_ptr<CallLink>> Outgoing::connect(const PeerAddress& address, Deadline deadline) {
  WEFT_TRY(const PeerId peer, transport_.add_peer(address.address));
  auto agreed = shake_hands(peer, deadline);
  if (!agreed.ok()) log_refusal(address.node, agreed.error());
  if (agreed.ok() && agreed->session.ends().node != address.node)
    agreed = Error{Errc::permission, fmt::format("expected this node, got {}", agreed->session.ends().node)};
  if (!agreed.ok()) {
    transport_.remove_peer(peer);
    return Error{agreed.error().code, fmt::format("peer {}: {}", address.node, agreed.error().message)};
  }
  const std::uint64_t session = agreed->session.ends().ours;
  auto link = std::make_shared<CallLink>(transport_, peer, std::move(agreed->session), read_bytes_);
  bool forgotten = false;
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return ended_error();
    links_[session] = link;
    forgotten = identity_.keys->get()->find(link->channel().key_id()) == nullptr;
  }
  if (forgotten) {  // since the handshake began: the call is made again
    drop(link);
    return link;
  }
  if (Status sent = send_frame(transport_, peer, agreed->confirm, deadline); !sent.ok()) {
    drop(link);
    return std::move(sent).error();
  }
  ++handshakes_;
  return link;
}

void Outgoing::log_refusal(const std::string& node, const Error& error) {
  if ((error.code != Errc::permission && error.code != Errc::unsupported) || !refusal_lines_.due(node)) return;
  if (error.code == Errc::unsupported) return log_warning("peer {}: {}: they refuse each other", node, error.message);
  log_warning("peer {}: its daemon does not hold this node's key of the cluster: they refuse each other", node);
}

// A node that was away while the cluster changed its key knows only the previous one. Its welcome names that key, and
// the call is made with it as long as this node accepts it.
Result<Caller::Agreed> Outgoing::shake_hands(PeerId peer, Deadline deadline) {
  Self self = identity_.in_session(random_session());
  for (bool again = false;; again = true) {
    const Caller caller(self);
    WEFT_TRY(const std::vector<std::byte> welcome, greet(peer, caller, self.session, deadline));
    WEFT_TRY(const FrameView frame, parse_frame(welcome));
    auto agreed = caller.welcomed(frame);
    if (agreed.ok() || agreed.error().code != Errc::permission || again) return agreed;
    const auto named = key_named_by(frame, self.keys);
    if (!named || *named == self.keys.proving().id()) return agreed;
    self = {self.keys.proving_by(*named), self.node, self.address, random_session()};
  }
}

// Returns the welcome to the caller's hello.
Result<std::vector<std::byte>> Outgoing::greet(PeerId peer, const Caller& caller, std::uint64_t session,
                                               Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    welcomes_[session];
  }
  auto welcome = send_hello(peer, session, caller.hello(), deadline);
  const std::lock_guard lock(mutex_);
  welcomes_.erase(session);
  return welcome;
}

Result<std::vector<std::byte>> Outgoing::send_hello(PeerId peer, std::uint64_t session,
                                                    const std::vector<std::byte>& hello, Deadline deadline) {
  const std::uint64_t failures = transport_.failures(peer);
  for (auto pause = kGreetAgainMin;; pause = std::min(2 * pause, kGreetAgainMax)) {
    const Status sent = transport_.send(peer, hello);
    if (!sent.ok() && sent.error().code != Errc::busy) return sent.error();
    std::unique_lock lock(mutex_);
    std::vector<std::byte>& welcome = welcomes_.at(session);
    const auto until = std::min(deadline, Clock::now() + pause);
    const std::uint64_t failed = transport_.failures(peer);
    while (welcome.empty() && !ending_ && Clock::now() < until && transport_.failures(peer) == failed)
      changed_.wait_until(lock, std::min(until, Clock::now() + kConnectPoll));
    if (!welcome.empty()) return std::move(welcome);
    if (ending_) return ended_error();
    if (Clock::now() >= deadline) return Error{Errc::timed_out, "no answer to a handshake in time"};
    if (transport_.failures(peer) >= failures + kConnectsMax)
      return Error{Errc::unreachable, "no daemon listens there"};
  }
}

std::optional<PeerRefusal> Outgoing::receive(const FrameView& frame) {
  if (frame.header.kind == FrameKind::welcome) {
    const std::lock_guard lock(mutex_);
    const auto found = welcomes_.find(frame.header.session);
    if (found == welcomes_.end()) return PeerRefusal::unknown_session;
    if (found->second.empty()) found->second = frame.bytes();
    changed_.notify_all();
    return {};
  }
  const std::shared_ptr<CallLink> link = find(frame.header.session);
  if (!link) return PeerRefusal::unknown_session;
  const Heard heard = link->receive(frame);
  if (heard != Heard::good) drop(link);
  return heard == Heard::refused ? std::optional(PeerRefusal::not_authentic) : std::nullopt;
}

std::shared_ptr<CallLink> Outgoing::open_link(const PeerAddress& address) const {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(address.node);
  return found == peers_.end() ? nullptr : found->second.open_to(address.address);
}

std::shared_ptr<CallLink> Outgoing::find(std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = links_.find(session);
  return found == links_.end() ? nullptr : found->second;
}

void Outgoing::drop(const std::shared_ptr<CallLink>& link) {
  {
    const std::lock_guard lock(mutex_);
    if (links_.erase(link->channel().number()) == 0) return;
    const auto peer = peers_.find(link->channel().node());
    if (peer != peers_.end() && peer->second.link == link) peer->second.link = nullptr;
  }
  link->channel().say_close();
  link->lose();
  // The link's reads end now, although answers may still hold the link.
  transport_.remove_peer(link->channel().peer());
}

void Outgoing::end_sessions_without(const KeyRing& keys) {
  std::vector<std::shared_ptr<CallLink>> links;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [session, link] : links_)
      if (keys.find(link->channel().key_id()) == nullptr) links.push_back(link);
  }
  for (const auto& link : links) drop(link);
}

void Outgoing::close() {
  std::vector<std::shared_ptr<CallLink>> links;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& [session, link] : links_) links.push_back(link);
  }
  changed_.notify_all();
  for (const auto& link : links) drop(link);
}

void Outgoing::add_to(ExchangeFigures& figures) const {
  figures.calls += calls_;
  figures.handshakes += handshakes_;
  figures.read_bytes += read_bytes_;
  const std::lock_guard lock(mutex_);
  figures.sessions += links_.size();
}

}  // namespace weft::net
