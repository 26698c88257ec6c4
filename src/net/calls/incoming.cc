#include "net/calls/incoming.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "net/calls/outgoing.h"

namespace weft::net {

Incoming::Incoming(Transport& transport, Identity identity, PeerServer* server, Refusals& refusals, unsigned threads)
    : transport_(transport), identity_(std::move(identity)), server_(server), refusals_(refusals), windows_(transport) {
  workers_.emplace(std::max(threads, 1U));
  keeper_ = std::thread([this] { keep(); });
}

Incoming::~Incoming() {
  close();
}

std::optional<PeerRefusal> Incoming::receive(const FrameView& frame) {
  if (frame.header.kind == FrameKind::hello)
    return queue_hello(frame) ? std::nullopt : std::optional(PeerRefusal::crowded);
  if (frame.header.kind == FrameKind::confirm) return confirm(frame);
  const LinkPtr link = find(frame.header.session);
  if (!link) return PeerRefusal::unknown_session;
  const Heard heard = hear(link, frame);
  if (heard != Heard::good) end(link);
  return heard == Heard::refused ? std::optional(PeerRefusal::not_authentic) : std::nullopt;
}

void Incoming::close() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (keeper_.joinable()) keeper_.join();
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return submitting_ == 0; });
  }
  gate_->close();
  workers_.reset();
  std::vector<LinkPtr> links;
  std::vector<PeerId> strangers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [session, link] : links_) links.push_back(link);
    strangers = half_open_.end_all();
  }
  for (const LinkPtr& link : links) end(link);
  for (const PeerId peer : strangers) transport_.remove_peer(peer);
  tell_server();
}

void Incoming::end_sessions_without(const KeyRing& keys) {
  std::vector<LinkPtr> links;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [session, link] : links_)
      if (keys.find(link->channel().key_id()) == nullptr) links.push_back(link);
  }
  for (const LinkPtr& link : links) end(link);
}

Incoming::LinkPtr Incoming::find(std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = links_.find(session);
  return found == links_.end() ? nullptr : found->second;
}

// Queues a hello for the keeper thread: the reply takes two multiplications on a curve, too long for the transport's
// thread.
bool Incoming::queue_hello(const FrameView& frame) {
  Hello hello{frame.bytes(), is_proved(*identity_.keys->get(), frame)};
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
  const auto frame = parse_frame(hello.frame);
  if (!frame.ok()) return refusals_.count(PeerRefusal::malformed);
  if (hello.proved && welcome_again(*frame)) return;
  const std::uint64_t session = random_session();
  auto answerer = Answerer::answer(identity_.in_session(session), *frame);
  if (!answerer.ok()) return refusals_.count(PeerRefusal::malformed);
  const EndpointAddress& address = answerer->caller_address();
  if (!admits(address, hello.proved)) return refusals_.count(PeerRefusal::crowded);
  const auto peer = transport_.add_peer(address);
  if (!peer.ok()) return refusals_.count(PeerRefusal::malformed, address);
  note_refusal(*answerer);
  const std::vector<std::byte> welcome = answerer->welcome();
  add_half_open(session, {std::move(*answerer), *peer, hello.proved, {frame->tag.begin(), frame->tag.end()}, welcome});
  static_cast<void>(transport_.send(*peer, welcome));
}

void Incoming::note_refusal(const Answerer& answerer) {
  const Status& accepted = answerer.accepted();
  if (accepted.ok()) return;
  const bool old = accepted.error().code == Errc::unsupported;
  refusals_.count(old ? PeerRefusal::wire_version : PeerRefusal::wrong_key);
  if (!refusal_lines_.due(answerer.caller())) return;
  const std::string address = refusals_.text_of(answerer.caller_address());
  if (old) return log_warning("{}: it is refused; its hello came from {}", accepted.error().message, address);
  log_warning(
      "a daemon that calls itself peer {} does not hold this node's key of the cluster: it is refused; its hello came "
      "from {}",
      printable(answerer.caller()), address);
}

// True if this hello was answered already. Sends the same welcome again.
bool Incoming::welcome_again(const FrameView& hello) {
  const std::lock_guard lock(mutex_);
  const HalfOpen* half = half_open_.find(hello.tag);
  if (half != nullptr) static_cast<void>(transport_.send(half->peer, half->welcome));
  return half != nullptr;
}

bool Incoming::admits(const EndpointAddress& address, bool proved) {
  const std::lock_guard lock(mutex_);
  return half_open_.admits(address, proved);
}

void Incoming::add_half_open(std::uint64_t session, HalfOpen half) {
  std::optional<PeerId> pushed_out;
  {
    const std::lock_guard lock(mutex_);
    pushed_out = half_open_.add(session, std::move(half));
  }
  if (!pushed_out) return;
  refusals_.count(PeerRefusal::abandoned);
  transport_.remove_peer(*pushed_out);
}

std::optional<PeerRefusal> Incoming::confirm(const FrameView& frame) {
  std::optional<HalfOpen> half;
  {
    const std::lock_guard lock(mutex_);
    half = half_open_.take(frame.header.session);
    if (!half || ending_) return PeerRefusal::unknown_session;
  }
  auto session = half->answerer.confirmed(frame);
  if (!session.ok() || session->ends().node == identity_.node) {
    transport_.remove_peer(half->peer);
    return PeerRefusal::not_authentic;
  }
  {
    const std::lock_guard lock(mutex_);
    half_open_.authenticated(session->ends().address);
  }
  add_session(std::move(*session), half->peer);
  ++handshakes_;
  return {};
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
  if (ending_ || identity_.keys->get()->find(link->channel().key_id()) == nullptr) return;
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

void Incoming::keep() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const auto due = next_due();
    const auto called = [&] { return ending_ || !hellos_.empty() || next_due() < due; };
    if (due == Clock::time_point::max())
      wake_.wait(lock, called);
    else
      wake_.wait_until(lock, due, called);
    keep_once(lock);
  }
}

void Incoming::keep_once(std::unique_lock<std::mutex>& lock) {
  while (!hellos_.empty() && !ending_) {
    const Hello hello = std::move(hellos_.front());
    hellos_.pop_front();
    lock.unlock();
    welcome(hello);
    lock.lock();
  }
  end_due(lock);
}

Incoming::Clock::time_point Incoming::next_due() const {
  const auto lease_end = leases_.empty() ? Clock::time_point::max() : leases_.begin()->first;
  return std::min(lease_end, half_open_.next_end());
}

void Incoming::end_due(std::unique_lock<std::mutex>& lock) {
  const auto now = Clock::now();
  const std::vector<PeerId> strangers = half_open_.end_due(now);
  std::vector<Lease> ended;
  while (!leases_.empty() && leases_.begin()->first <= now) {
    ended.push_back(std::move(leases_.begin()->second));
    leases_.erase(leases_.begin());
  }
  lock.unlock();
  for (const PeerId peer : strangers) {
    refusals_.count(PeerRefusal::abandoned);
    transport_.remove_peer(peer);
  }
  for (const Lease& lease : ended)
    if (const LinkPtr link = lease.link.lock()) end_lease(link, lease.call);
  lock.lock();
}

// Closes the windows of a call, unless their reader has renewed the lease meanwhile.
void Incoming::end_lease(const LinkPtr& link, std::uint64_t call) {
  const auto until = link->open_until(call);
  if (until && *until > Clock::now()) return lease(link, call, *until);
  auto over = link->end(call);
  if (!over || over->kept.windows.count() == 0) return;
  ++lease_ends_;
  if (!over->kept.subject.empty())
    log_warning("peer {}: nothing came from it for {} s while it read {}", link->channel().node(),
                kWindowLease.count() / 1000, over->kept.subject);
  windows_.withdraw(std::move(over->kept.windows));
  report_ended(std::move(over->kept), 0);
}

void Incoming::add_to(ExchangeFigures& figures) const {
  figures.answers += answers_;
  figures.pending += gate_->pending();
  figures.busy += busy_;
  figures.handshakes += handshakes_;
  figures.lease_ends += lease_ends_;
  figures.served_bytes += served_bytes_;
  windows_.add_to(figures);
  const std::lock_guard lock(mutex_);
  figures.sessions += links_.size();
  figures.half_open += half_open_.size();
}

}  // namespace weft::net
