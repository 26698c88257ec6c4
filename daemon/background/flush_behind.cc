#include "daemon/background/flush_behind.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "os/sys.h"
#include "weft/names.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr auto kFlushTick = std::chrono::milliseconds(100);
constexpr auto kFlushPause = std::chrono::seconds(1);  // before the next round while versions are left in memory
// Before the next poll if none is known. No publish reports a version whose commit failed behind its record in the
// journal: the next writer of any kind replays the record. So the index is read, not what publishes say.
constexpr auto kFlushPoll = std::chrono::seconds(2);
constexpr auto kHoldMax = std::chrono::seconds(5);  // longest delay of a piece by publishes

}  // namespace

FlushBehind::FlushBehind(Store& store, MemoryVersions& memory, Registry& registry, std::string node,
                         std::uint64_t bytes_max, const TimeSource& time)
    : store_(store),
      memory_(memory),
      registry_(registry),
      node_(std::move(node)),
      promises_(bytes_max, own_user()),
      worker_("in memory", RetryPause(kFlushPause), time) {
  if (const auto waiting = scan(); waiting.ok()) show(*waiting);  // else round() reports the error
  worker_.start([this] { return round(); });
}

FlushBehind::~FlushBehind() {
  {
    const std::lock_guard lock(mutex_);
    worker_.ask_to_end();
  }
  changed_.notify_all();
  worker_.end();
}

void FlushBehind::set_max(std::uint64_t bytes_max) {
  const std::lock_guard lock(mutex_);
  promises_.set_max(bytes_max);
  changed_.notify_all();
}

Result<FlushBehind::Publish> FlushBehind::begin_publish(uid_t user, std::uint64_t bytes, bool in_memory,
                                                        const Cancelled& cancelled) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!in_memory || bytes > promises_.most_for(user)) bytes = 0;
    const auto promise = promises_.begin(user, bytes, status_.bytes + fresh_);
    if (promise != promises_.end()) return Publish(this, promise, bytes != 0);
    if (cancelled() || worker_.ending())
      return Error{Errc::cancelled, "interrupted while memory was full of other versions"};
    changed_.wait_for(lock, kFlushTick);
  }
}

void FlushBehind::end_publish(MemoryPromises::Publish promise, VersionId version) {
  const std::lock_guard lock(mutex_);
  fresh_ += promises_.finish(promise, version);
  worker_.wake();
  changed_.notify_all();
}

FlushBehind::Publish::~Publish() {
  if (owner_ != nullptr) owner_->end_publish(promise_, version_);
}

bool FlushBehind::Publish::lasts() const {
  const std::lock_guard lock(owner_->mutex_);
  return owner_->promises_.lasts(promise_);
}

Status FlushBehind::Publish::commit() {
  const std::lock_guard lock(owner_->mutex_);
  if (owner_->promises_.commit(promise_)) return {};
  return Error{Errc::timed_out,
               "a publish into memory: its files were read too slowly; publish it with durability local"};
}

// Publishes delay pieces for half of the time at most: without a bound, a series of them would stop all flushes.
Status FlushBehind::pace() {
  std::unique_lock lock(mutex_);
  const Deadline begin = Deadline::clock::now(), latest = begin + kHoldMax;
  Deadline now = begin;
  while (begin >= holds_again_ && now < latest && promises_.hold_flush() && !worker_.ending()) {
    changed_.wait_until(lock, std::min(latest, now + kFlushTick));
    now = Deadline::clock::now();
  }
  if (now != begin) holds_again_ = now + (now - begin);
  return worker_.ending() ? Status(Error{Errc::cancelled, "the daemon ends"}) : Status{};
}

// Returns the versions of this node that are in memory, oldest first.
Result<std::vector<FlushBehind::Waiting>> FlushBehind::scan() {
  WEFT_TRY(std::vector<VersionRow> versions, versions_in_memory(store_));
  std::vector<Waiting> waiting;
  for (VersionRow& row : versions) {
    WEFT_TRY(const std::uint64_t bytes, memory_.unsynced_bytes(row.id));
    waiting.push_back({std::move(row), bytes});
  }
  return waiting;
}

// Sets status_ from the result of scan(). Call with mutex_ held, or before the worker starts.
void FlushBehind::show(const std::vector<Waiting>& waiting) {
  status_.versions = waiting.size();
  status_.oldest_ns = waiting.empty() ? 0 : waiting.front().row.time_ns;
  status_.bytes = 0;
  for (const Waiting& version : waiting) status_.bytes += version.bytes;
}

// Flushes the versions, and reports the results to the registry. After an error it continues with the next version;
// returns the first error.
Status FlushBehind::flush(const std::vector<Waiting>& waiting) {
  const std::string why =
      fmt::format("lost: it was only in the memory of {} when that machine stopped", node_.empty() ? "a node" : node_);
  Status worst;
  std::uint64_t oldest_ns = 0;
  for (const auto& [row, bytes] : waiting) {
    auto state = flush_version(memory_, registry_, row, why, [this] { return pace(); });
    if (!state.ok() && state.error().code == Errc::cancelled) return std::move(state).error();
    const bool waits = !state.ok() || *state == MemoryState::waits;  // for versions in the memory of other nodes
    const bool lost = state.ok() && *state == MemoryState::lost;
    if (lost) log_error("{}: {}", spec_of(row.model_name, row.number), why);
    const std::lock_guard lock(mutex_);
    if (state.ok()) status_.bytes -= bytes;
    if (state.ok()) promises_.erase(row.id);
    if (lost) ++status_.lost;
    if (state.ok() && *state == MemoryState::kept) ++status_.kept;
    if (!waits)
      --status_.versions;
    else if (oldest_ns == 0)
      oldest_ns = row.time_ns;
    if (!state.ok() && worst.ok()) worst = std::move(state).error();
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  status_.oldest_ns = oldest_ns;
  return worst;
}

// Flushes all versions in memory.
Result<Worker::Pause> FlushBehind::round() {
  std::uint64_t seen = 0;
  std::vector<VersionId> counted;
  {
    const std::lock_guard lock(mutex_);
    seen = fresh_;
    counted = promises_.versions();
  }
  WEFT_TRY(const std::vector<Waiting> waiting, scan());
  {
    const std::lock_guard lock(mutex_);
    fresh_ -= seen;
    show(waiting);
    for (const VersionId version : counted)
      if (std::ranges::none_of(waiting, [&](const Waiting& one) { return one.row.id == version; }))
        promises_.erase(version);
    changed_.notify_all();
  }
  WEFT_CHECK(flush(waiting));
  const std::lock_guard lock(mutex_);
  return Worker::Pause(status_.versions == 0 ? kFlushPoll : kFlushPause);
}

Result<bool> FlushBehind::is_in_memory(VersionId version) {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const bool waits, lists_version(*snapshot, &Snapshot::in_memory, version));
  if (waits) return true;
  WEFT_TRY(const VersionRow row, snapshot->version(version));
  if (!row.lost.empty()) return Error{Errc::absent, row.lost};
  return false;
}

Status FlushBehind::wait_for(VersionId version, const Cancelled& cancelled) {
  for (;;) {
    WEFT_TRY(const bool waits, is_in_memory(version));
    if (!waits) return {};
    std::unique_lock lock(mutex_);
    if (cancelled() || worker_.ending()) {
      const std::string problem = worker_.problem();
      return Error{Errc::cancelled, "it is only in memory yet" + (problem.empty() ? "" : ": " + problem)};
    }
    changed_.wait_for(lock, kFlushTick);
  }
}

FlushStatus FlushBehind::status() {
  const std::lock_guard lock(mutex_);
  FlushStatus status = status_;
  status.bytes += fresh_;
  status.problem = worker_.problem();
  return status;
}

}  // namespace weft
