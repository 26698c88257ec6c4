// The workers: they take tasks, ask sources, and write verified bytes.
#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "fetch/fetcher.h"
#include "fetch/fetcher_swarm.h"
#include "os/holes.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(20);  // between polls for a free source

}  // namespace

// True while the publisher may still lack bytes: other nodes hear of a version before the index of its publisher has
// its bytes.
bool Fetcher::is_young(const Transfer& transfer) const {
  return Clock::now() < transfer.young_until && options_.has_member(transfer.publisher);
}

Result<std::vector<Digest>> Fetcher::move(FetchTask& task, const std::vector<ChunkRun>& runs) {
  Transfer& transfer = *task.transfer;
  const Range range = task.range();
  const Status room = room_.make_room(*transfer.pack, range.length);
  if (!room.ok() && (task.traffic == Traffic::ahead || room.error().code != Errc::no_space)) return room.error();
  FetchSources::Request request{transfer.manifest, runs, {}, task.young, waited_until(task)};
  request.aid.traffic = task.traffic;
  request.aid.is_wanted = [this] { return !state_.is_ending(); };
  request.aid.came = [this] { state_.wake_worker(); };
  request.aid.subject = transfer.subject;
  bases_.lend(transfer.bases, runs, request.aid);
  auto got = sources_.read(request);
  bases_.note_coded(transfer.bases, request.aid.coded);
  if (!got.ok()) return std::move(got).error();
  WEFT_CHECK(outcomes_.keep_or_pass(task, room, got->read.bytes.bytes()));
  log_debug(LogCategory::fetch, "transfer {}: {} bytes at {} from {}", transfer.log_id, range.length, range.offset,
            got->name);
  sources_.taken(*got);
  return std::move(got->read.digests);
}

// Returns the end of the wait for a task. Late units have used up a part of the patience, so they wait only until their
// sources have been silent for `patience`.
Fetcher::Clock::time_point Fetcher::waited_until(const FetchTask& task) const {
  const MutexLock lock(state_.mutex);
  const Transfer& transfer = *task.transfer;
  return transfer.was_put_back(task.unit) ? transfer.silent_from(task.unit) + options_.patience
                                          : Clock::time_point::max();
}

void Fetcher::run(FetchTask task) {
  const auto begun = Clock::now();
  const auto runs = task.runs();
  const Digest manifest = task.transfer->manifest;
  Result<std::vector<Digest>> digests = std::vector<Digest>();
  if (task.same) {
    auto copied = copy_same(task, runs);
    if (copied.ok() && !*copied) return leave_same(task);
    digests = copied.ok() ? Result<std::vector<Digest>>(**std::move(copied)) : std::move(copied).error();
  } else {
    task.young = is_young(*task.transfer);
    digests = move(task, runs);
    if (digests.ok()) compare(task);  // while its units run: other units of the blob wait for it
  }
  outcomes_.set(task, digests, begun);
  if (!digests.ok() || task.passed) return;
  sources_.arrived(manifest, runs);
}

// Returns the next task; nothing at the end. One worker polls for a free source, and wakes the next one before it
// starts to work.
std::optional<FetchTask> Fetcher::next() {
  UniqueLock lock(state_.mutex);
  for (;;) {
    state_.work.wait(lock, [this]() WEFT_REQUIRES(state_.mutex) { return state_.ending || !state_.queue.is_idle(); });
    if (state_.ending) return {};
    if (auto task = state_.queue.take()) {
      state_.work.notify_one();
      return task;
    }
    if (state_.queue.is_idle()) continue;
    if (one_polls_) {
      state_.work.wait(lock);
      continue;
    }
    one_polls_ = true;
    state_.work.wait_for(lock, kLookAgain);
    one_polls_ = false;
  }
}

void Fetcher::work() {
  while (auto task = next()) {
    if (task->offered)
      swarming_->read(std::move(task->offered));
    else
      run(std::move(*task));
  }
}

void Fetcher::set_policy(const FetchPolicy& policy) {
  bases_.allow(policy.sparse);
  room_.set_bound(policy.cache_max);
  const MutexLock lock(state_.mutex);
  cold_ = policy.cold;
  state_.keep.notify_one();
}

// ColdAdvice::keeps counts the space of evictable packs too.
ColdAdvice Fetcher::advice() {
  const std::uint64_t keeps = room_.bound();
  const MutexLock lock(state_.mutex);
  return {cold_, state_.rate.bytes_per_s(), keeps};
}

FetchStatus Fetcher::status() const {
  FetchStatus status;
  {
    const MutexLock lock(state_.mutex);
    status.local = state_.local;
    status.transfers = state_.table.size();
    status.waiting = state_.queue.units();
  }
  status.sources = sources_.counts();
  status.problem = sources_.problem();
  status.manifests = manifests_.fetched();
  FetchBases::Counts coded = bases_.counts();
  status.coded = coded.all;
  status.last_coded = std::move(coded.last);
  return status;
}

}  // namespace weft
