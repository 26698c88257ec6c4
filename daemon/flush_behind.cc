#include "daemon/flush_behind.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "weft/names.h"
#include "weft/snapshot.h"

namespace weft {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kPause = std::chrono::seconds(1);    // before the next round while versions are left in memory
constexpr auto kHoldMax = std::chrono::seconds(5);  // longest delay of a piece by publishes; without a bound, a series
                                                    // of publishes would stop all flushes

}  // namespace

FlushBehind::FlushBehind(Store& store, MemoryVersions& memory, Registry& registry, std::string node,
                         std::uint64_t bytes_max)
    : store_(store),
      memory_(memory),
      registry_(registry),
      node_(std::move(node)),
      bytes_max_(bytes_max),
      worker_("in memory", RetryPause(kPause)) {
  if (const auto waiting = look(); waiting.ok()) show(*waiting);  // else round() reports the error
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
  bytes_max_ = bytes_max;
  changed_.notify_all();
}

Result<FlushBehind::Publish> FlushBehind::begin_publish(std::uint64_t bytes, bool in_memory,
                                                        const Cancelled& cancelled) {
  std::unique_lock lock(mutex_);
  if (!in_memory || bytes > bytes_max_) bytes = 0;
  while (bytes != 0 && status_.bytes + promised_ + fresh_ + bytes > bytes_max_) {
    if (cancelled() || worker_.ending())
      return Error{Errc::cancelled, "interrupted while memory was full of other versions"};
    changed_.wait_for(lock, kTick);
  }
  ++publishing_;
  promised_ += bytes;
  return Publish(this, bytes);
}

void FlushBehind::end_publish(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  --publishing_;
  promised_ -= bytes;
  fresh_ += bytes;
  worker_.wake();
  changed_.notify_all();
}

FlushBehind::Publish::~Publish() {
  if (owner_ != nullptr) owner_->end_publish(bytes_);
}

Status FlushBehind::pace() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kHoldMax, [this] { return publishing_ == 0 || worker_.ending(); });
  return worker_.ending() ? Status(Error{Errc::cancelled, "the daemon ends"}) : Status{};
}

// Returns the versions of this node that are in memory, oldest first.
Result<std::vector<FlushBehind::Waiting>> FlushBehind::look() {
  std::vector<Waiting> waiting;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(const std::vector<VersionId> noted, snapshot->in_memory(0, SIZE_MAX));
    for (const VersionId id : noted) {
      WEFT_TRY(VersionRow row, snapshot->version(id));
      if (!store_.cluster() || row.publisher == store_.cluster()->node) waiting.push_back({std::move(row), 0});
    }
  }
  for (Waiting& version : waiting) {
    WEFT_TRY(version.bytes, memory_.unsynced_bytes(version.row.id));
  }
  return waiting;
}

// Sets status_ from the result of look(). Call with mutex_ held, or before the worker starts.
void FlushBehind::show(const std::vector<Waiting>& waiting) {
  status_.versions = waiting.size();
  status_.oldest_ns = waiting.empty() ? 0 : waiting.front().row.time_ns;
  status_.bytes = 0;
  for (const Waiting& version : waiting) status_.bytes += version.bytes;
}

Status FlushBehind::keep(const VersionRow& version) {
  WEFT_CHECK(registry_.keep_version(version.model_name, version.number));
  const std::lock_guard lock(mutex_);
  ++status_.kept;
  return {};
}

Status FlushBehind::lose(const VersionRow& version) {
  const std::string why =
      fmt::format("lost: it was only in the memory of {} when that machine stopped", node_.empty() ? "a node" : node_);
  log_error("{}: {}", spec_of(version.model_name, version.number), why);
  const Status lost = registry_.lose_version(version.model_name, version.number, why);
  if (!lost.ok() && lost.error().code != Errc::not_found) return lost;  // not_found: a user has removed it meanwhile
  const std::lock_guard lock(mutex_);
  ++status_.lost;
  return {};
}

// Flushes a version and reports the result to the registry. True if the version waits for versions in the memory of
// other nodes.
Result<bool> FlushBehind::settle(const VersionRow& version) {
  WEFT_TRY(const MemoryState state, memory_.settle_version(version.id, [this] { return pace(); }));
  if (state == MemoryState::kept) WEFT_CHECK(keep(version));
  if (state == MemoryState::lost) WEFT_CHECK(lose(version));
  return state == MemoryState::waits;
}

// Flushes the versions. After an error it continues with the next version; returns the first error.
Status FlushBehind::flush(const std::vector<Waiting>& waiting) {
  Status worst;
  std::uint64_t oldest_ns = 0;
  for (const Waiting& version : waiting) {
    auto left = settle(version.row);
    if (!left.ok() && left.error().code == Errc::cancelled) return std::move(left).error();
    const std::lock_guard lock(mutex_);
    if (left.ok()) status_.bytes -= version.bytes;
    if (left.ok() && !*left)
      --status_.versions;
    else if (oldest_ns == 0)
      oldest_ns = version.row.time_ns;
    if (!left.ok() && worst.ok()) worst = std::move(left).error();
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  status_.oldest_ns = oldest_ns;
  return worst;
}

// Flushes all versions in memory.
Result<Worker::Pause> FlushBehind::round() {
  std::uint64_t seen = 0;
  {
    const std::lock_guard lock(mutex_);
    seen = fresh_;
  }
  WEFT_TRY(const std::vector<Waiting> waiting, look());
  {
    const std::lock_guard lock(mutex_);
    fresh_ -= seen;
    show(waiting);
    changed_.notify_all();
  }
  WEFT_CHECK(flush(waiting));
  const std::lock_guard lock(mutex_);
  return status_.versions == 0 ? Worker::kUntilWoken : kPause;
}

Result<bool> FlushBehind::is_in_memory(VersionId version) {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const std::vector<VersionId> next, snapshot->in_memory(version, 1));
  if (!next.empty() && next.front() == version) return true;
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
    changed_.wait_for(lock, kTick);
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
