#include "net/calls/incoming.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace weft::net {

Incoming::Incoming(Transport& transport, Self identity, PeerServer* server, unsigned threads)
    : transport_(transport), identity_(std::move(identity)), server_(server), windows_(transport) {
  workers_.emplace(std::max(threads, 1U));
  keeper_ = std::thread([this] { keep(); });
}

Incoming::~Incoming() {
  close();
}

bool Incoming::receive(const FrameView& frame) {
  if (frame.header.kind == FrameKind::hello) return queue_hello(frame);
  if (frame.header.kind == FrameKind::confirm) return confirm(frame);
  const LinkPtr link = find(frame.header.session);
  if (!link) return false;
  const Heard heard = hear(link, frame);
  if (heard != Heard::good) end(link);
  return heard != Heard::refused;
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
    for (const auto& [session, half] : half_open_) strangers.push_back(half.peer);
    half_open_.clear();
  }
  for (const LinkPtr& link : links) end(link);
  for (const PeerId peer : strangers) transport_.remove_peer(peer);
  tell_server();
}

Incoming::LinkPtr Incoming::find(std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = links_.find(session);
  return found == links_.end() ? nullptr : found->second;
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
  auto due = leases_.empty() ? Clock::time_point::max() : leases_.begin()->first;
  for (const auto& [session, half] : half_open_) due = std::min(due, half.until);
  return due;
}

void Incoming::end_due(std::unique_lock<std::mutex>& lock) {
  const auto now = Clock::now();
  std::vector<PeerId> strangers;
  for (auto at = half_open_.begin(); at != half_open_.end();) {
    if (at->second.until > now) {
      ++at;
      continue;
    }
    strangers.push_back(at->second.peer);
    at = half_open_.erase(at);
  }
  std::vector<Lease> ended;
  while (!leases_.empty() && leases_.begin()->first <= now) {
    ended.push_back(std::move(leases_.begin()->second));
    leases_.erase(leases_.begin());
  }
  lock.unlock();
  unkept_ += strangers.size();
  for (const PeerId peer : strangers) transport_.remove_peer(peer);
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
  figures.refused += unkept_;
  windows_.add_to(figures);
  const std::lock_guard lock(mutex_);
  figures.sessions += links_.size();
  figures.half_open += half_open_.size();
}

}  // namespace weft::net
