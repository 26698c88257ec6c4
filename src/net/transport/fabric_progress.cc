// The threads of a FabricTransport: they read completions, pass messages to the receiver, and post waiting operations.
#include <fmt/core.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "net/transport/fabric_transport.h"

namespace weft::net {
namespace {

constexpr int kSleepMs = 1000;   // bounds the cost of a lost wake-up
constexpr int kRetryMsMax = 64;  // between attempts after -FI_EAGAIN, which no event ends
constexpr std::size_t kCompletionsAtOnce = 64;

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

// Makes progress until the transport ends or a job is queued.
void FabricTransport::make_progress() {
  std::array<fi_cq_data_entry, kCompletionsAtOnce> entries;
  while (!ending_) {
    make_changes();
    const bool soon = endpoints_->poll();
    const int patience_ms = submit_waiting() && !soon ? kSleepMs : retry_ms_;
    // Not fi_trywait and poll: net's fi_trywait in libfabric 1.17 leaves the descriptor readable for good, and poll
    // spins.
    const ssize_t count =
        fi_cq_sread(endpoints_->domain().queue.get(), entries.data(), entries.size(), nullptr, patience_ms);
    retry_ms_ = count == -FI_EAGAIN ? std::min(2 * retry_ms_, kRetryMsMax) : 1;
    if (count == -FI_EAVAIL) drain_error();
    for (std::size_t i = 0; count > 0 && i < static_cast<std::size_t>(count); ++i) complete(entries.at(i), {});
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

void FabricTransport::between_progress(const std::function<void()>& change) {
  std::unique_lock lock(changing_);  // also while this thread runs `change` itself
  if (!progresses_ || std::this_thread::get_id() == progress_thread_) return change();
  Change mine{change};
  changes_.push_back(&mine);
  wake();
  changed_.wait(lock, [&] { return mine.made; });
}

void FabricTransport::drain_error() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(endpoints_->domain().queue.get(), &entry, 0) < 0) return;
  fi_cq_data_entry over{};
  over.op_context = entry.op_context;
  complete(over, fabric_error(entry.err, "a peer"));
}

void FabricTransport::complete(const fi_cq_data_entry& entry, const Status& outcome) {
  std::shared_ptr<Operation> operation;
  {
    const std::lock_guard lock(mutex_);
    const auto found = in_flight_.find(entry.op_context);
    if (found != in_flight_.end()) {
      operation = std::move(found->second);
      in_flight_.erase(found);
    }
  }
  if (!operation) return endpoints_->completed_own(entry.op_context, outcome.ok());
  const bool tells = operation->kind == OperationKind::receive && (entry.flags & FI_REMOTE_CQ_DATA) != 0;
  sender_ = tells ? static_cast<ConnectionId>(entry.data) : operation->connection;
  endpoints_->completed(sender_, outcome.ok(), entry.len);
  if (operation->kind == OperationKind::receive)
    return complete_receive(std::static_pointer_cast<MessageOperation>(operation), outcome, entry.len);
  const std::lock_guard lock(mutex_);
  const auto peer = peers_.find(operation->peer);
  if (peer != peers_.end()) --peer->second.in_flight;
  end(*operation, outcome);
}

void FabricTransport::receive_on(ConnectionId connection, std::size_t count) {
  for (; count > 0; --count) {
    const auto buffer = receive_buffers_.take();
    if (!buffer) return;
    auto receive = std::make_shared<MessageOperation>(OperationKind::receive, *buffer);
    receive->connection = connection;
    post_receive(std::move(receive));
  }
}

void FabricTransport::complete_receive(std::shared_ptr<MessageOperation> operation, const Status& outcome,
                                       std::size_t received) {
  if (outcome.ok() && received > 0) {
    {
      const std::lock_guard lock(mutex_);
      ++counters_.messages_received;
    }
    if (receiver_) receiver_(operation->buffer.bytes.first(std::min(received, operation->buffer.bytes.size())));
  }
  post_receive(std::move(operation));
}

void FabricTransport::post_receive(std::shared_ptr<MessageOperation> operation) {
  MessageOperation& receive = *operation;
  const std::lock_guard lock(mutex_);
  in_flight_.emplace(&receive.context, operation);
  const long failed = endpoints_->post_receive(receive);
  if (failed == 0) return;
  in_flight_.erase(&receive.context);
  if (failed == -FI_EAGAIN)
    unposted_receives_.push_back(std::move(operation));
  else  // its connection is closed
    receive_buffers_.give_back(receive.buffer);
}

// Posts the waiting receives and operations. True if none has to be tried again.
bool FabricTransport::submit_waiting() {
  for (auto& receive : std::exchange(unposted_receives_, {})) post_receive(std::move(receive));
  const std::lock_guard lock(mutex_);
  for (auto& [id, peer] : peers_)
    while (!peer.waiting.empty() && post(peer, peer.waiting.front())) peer.waiting.pop_front();
  return unposted_receives_.empty() &&
         std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.second.waiting.empty(); });
}

// Wakes the progress thread if the operation has to wait: only that thread tries it again, and a new connection alone
// does not wake it.
void FabricTransport::submit(Peer& peer, std::shared_ptr<Operation> operation) {
  const bool posted = peer.waiting.empty() && post(peer, operation);
  if (!posted) peer.waiting.push_back(std::move(operation));
  if (!posted || needs_progress_) wake();
}

bool FabricTransport::post(Peer& peer, const std::shared_ptr<Operation>& operation) {
  if (peer.in_flight >= endpoints_->posted_max()) return false;
  in_flight_.emplace(&operation->context, operation);
  const long failed = endpoints_->post(*peer.route, *operation);
  if (failed == 0) {
    ++peer.in_flight;
    return true;
  }
  in_flight_.erase(&operation->context);
  if (failed == -FI_EAGAIN) return false;
  end(*operation, fabric_error(failed, fmt::format("peer {}", operation->peer)));
  return true;
}

// Ends a send or a read: counts it, and returns the send's buffer or wakes the waiter of the read.
void FabricTransport::end(Operation& operation, Status outcome) {
  if (operation.kind == OperationKind::send) {
    send_buffers_.give_back(static_cast<MessageOperation&>(operation).buffer);
    const auto peer = peers_.find(operation.peer);
    if (peer != peers_.end()) --peer->second.unsent;
    if (outcome.ok()) ++counters_.messages_sent;
    return;
  }
  auto& read = static_cast<ReadOperation&>(operation);
  if (outcome.ok()) ++counters_.reads_done;
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
