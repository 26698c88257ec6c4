// The threads of a FabricTransport: read completions, hand out messages, post what had to wait.
#include <fmt/core.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "net/transport/fabric_transport.h"
#include "net/transport/tcp_patience.h"

namespace weft::net {
namespace {

constexpr int kSleepMs = 1000;   // at most: a lost wake-up costs no more
constexpr int kRetryMsMax = 64;  // where libfabric said "later", and nothing else will wake us
constexpr std::size_t kCompletionsAtOnce = 64;
constexpr std::chrono::seconds kBetweenLooks{1};  // for connections that were made

}  // namespace

void FabricTransport::run() {
  while (!ending_) {
    ++standing_by_;
    std::unique_lock turn(turn_);
    --standing_by_;
    progress_thread_ = std::this_thread::get_id();
    make_progress();
    progress_thread_ = std::thread::id();
    const auto job = std::exchange(job_, nullptr);
    turn.unlock();
    if (job) job();
  }
}

bool FabricTransport::after_receiving(std::function<void()> job) {
  if (std::this_thread::get_id() != progress_thread_ || job_ || standing_by_ == 0) return false;
  job_ = std::move(job);
  return true;
}

// Until the end, or until there is a job.
void FabricTransport::make_progress() {
  std::array<fi_cq_msg_entry, kCompletionsAtOnce> entries;
  while (!ending_) {
    make_changes();
    bound_patience();
    const int patience_ms = submit_waiting() ? kSleepMs : retry_ms_;
    // Not fi_trywait and poll: net's fi_trywait in libfabric 1.17 leaves the descriptor readable for good, and poll
    // spins.
    const ssize_t count = fi_cq_sread(endpoint_->queue.get(), entries.data(), entries.size(), nullptr, patience_ms);
    retry_ms_ = count == -FI_EAGAIN ? std::min(2 * retry_ms_, kRetryMsMax) : 1;
    if (count == -FI_EAVAIL) drain_error();
    for (std::size_t i = 0; count > 0 && i < static_cast<std::size_t>(count); ++i)
      complete(entries.at(i).op_context, {}, entries.at(i).len);
    if (job_) return;
  }
  progresses_ = false;
  make_changes();
}

void FabricTransport::make_changes() {
  const std::lock_guard lock(changing_);
  if (changes_.empty()) return;
  for (Change* change : std::exchange(changes_, {})) {
    change->make();
    change->made = true;
  }
  changed_.notify_all();
}

void FabricTransport::bound_patience() {
  const auto now = std::chrono::steady_clock::now();
  if (!may_connect_ || now < bounded_at_ + kBetweenLooks) return;
  may_connect_ = false;
  bounded_at_ = now;
  bound_tcp_patience(endpoint_->address);
}

void FabricTransport::between_progress(const std::function<void()>& change) {
  std::unique_lock lock(changing_);  // also of changes that nobody else makes
  if (!progresses_ || std::this_thread::get_id() == progress_thread_) return change();
  Change mine{change};
  changes_.push_back(&mine);
  wake();
  changed_.wait(lock, [&] { return mine.made; });
}

void FabricTransport::drain_error() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(endpoint_->queue.get(), &entry, 0) < 0) return;
  complete(entry.op_context, fabric_error(entry.err, "a peer"), 0);
}

void FabricTransport::complete(void* context, const Status& outcome, std::size_t received) {
  std::shared_ptr<Operation> operation;
  {
    const std::lock_guard lock(mutex_);
    const auto found = in_flight_.find(context);
    if (found == in_flight_.end()) return;
    operation = std::move(found->second);
    in_flight_.erase(found);
    const auto peer = peers_.find(operation->peer);
    if (peer != peers_.end()) --peer->second.in_flight;
    if (operation->kind != OperationKind::receive) end(*operation, outcome);
  }
  if (operation->kind == OperationKind::receive)
    complete_receive(std::static_pointer_cast<MessageOperation>(operation), outcome, received);
}

void FabricTransport::complete_receive(std::shared_ptr<MessageOperation> operation, const Status& outcome,
                                       std::size_t received) {
  if (outcome.ok() && received > 0) {
    {
      const std::lock_guard lock(mutex_);
      ++counters_.messages_received;
    }
    if (receiver_) receiver_(operation->buffer.first(std::min(received, operation->buffer.size())));
  }
  post_receive(std::move(operation));
}

void FabricTransport::post_receive(std::shared_ptr<MessageOperation> operation) {
  MessageOperation& receive = *operation;
  const std::lock_guard lock(mutex_);
  in_flight_.emplace(&receive.context, operation);
  const ssize_t failed = fi_recv(endpoint_->endpoint.get(), receive.buffer.data(), receive.buffer.size(),
                                 receive_buffers_->descriptor(), FI_ADDR_UNSPEC, &receive.context);
  if (failed == 0) return;
  in_flight_.erase(&receive.context);
  unposted_receives_.push_back(std::move(operation));
}

// True when nothing has to be tried again.
bool FabricTransport::submit_waiting() {
  for (auto& receive : std::exchange(unposted_receives_, {})) post_receive(std::move(receive));
  const std::lock_guard lock(mutex_);
  for (auto& [id, peer] : peers_)
    while (!peer.waiting.empty() && post(peer, peer.waiting.front())) peer.waiting.pop_front();
  return unposted_receives_.empty() &&
         std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.second.waiting.empty(); });
}

// The thread may sleep by now: what waits is tried again by nobody else, not even when a connection is made.
void FabricTransport::submit(Peer& peer, std::shared_ptr<Operation> operation) {
  const bool posted = peer.waiting.empty() && post(peer, operation);
  if (!posted) peer.waiting.push_back(std::move(operation));
  if (!posted || needs_progress_) wake();
}

bool FabricTransport::post(Peer& peer, const std::shared_ptr<Operation>& operation) {
  // Its share of the endpoint's room, so that a peer that does not answer leaves some to the others.
  const std::size_t posted_max = std::max<std::size_t>(4, endpoint_->info->tx_attr->size / 4);
  if (peer.in_flight >= posted_max) return false;
  in_flight_.emplace(&operation->context, operation);
  const long failed = post_now(peer, *operation);
  if (failed == 0) {
    ++peer.in_flight;
    return true;
  }
  in_flight_.erase(&operation->context);
  if (failed == -FI_EAGAIN) {
    may_connect_ = true;
    return false;
  }
  end(*operation, fabric_error(failed, fmt::format("peer {}", operation->peer)));
  return true;
}

long FabricTransport::post_now(const Peer& peer, Operation& operation) {
  fid_ep* endpoint = endpoint_->endpoint.get();
  if (operation.kind == OperationKind::send) {
    auto& message = static_cast<MessageOperation&>(operation);
    return fi_send(endpoint, message.buffer.data(), message.length, send_buffers_->descriptor(), peer.address,
                   &message.context);
  }
  auto& read = static_cast<ReadOperation&>(operation);
  return fi_read(endpoint, read.landing().bytes().data() + read.at, read.length,
                 read.landing().registration().descriptor(), peer.address, read.address, read.key, &read.context);
}

// The end of a send or a read: counted, its buffer given back, its waiter told.
void FabricTransport::end(Operation& operation, Status outcome) {
  if (operation.kind == OperationKind::send) {
    send_buffers_->give_back(static_cast<MessageOperation&>(operation).buffer);
    const auto peer = peers_.find(operation.peer);
    if (peer != peers_.end()) --peer->second.unsent;
    if (outcome.ok()) ++counters_.messages_sent;
    return;
  }
  auto& read = static_cast<ReadOperation&>(operation);
  ++(outcome.ok() ? counters_.reads_done : counters_.reads_failed);
  if (outcome.ok()) counters_.read_bytes += read.length;
  read.outcome->finish(std::move(outcome));
}

void FabricTransport::end_reads(const PeerId* peer, std::string_view why) {
  const std::lock_guard lock(mutex_);
  for (const auto& [context, operation] : in_flight_)
    if (operation->kind == OperationKind::read && (peer == nullptr || operation->peer == *peer))
      static_cast<ReadOperation&>(*operation)
          .outcome->finish(Error{Errc::unreachable, fmt::format("peer {}: {}", operation->peer, why)});
  if (peer != nullptr) return;
  for (auto& [id, entry] : peers_)
    for (const auto& operation : entry.waiting)
      end(*operation, Error{Errc::unreachable, fmt::format("peer {}: {}", id, why)});
}

}  // namespace weft::net
