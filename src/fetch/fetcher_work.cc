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
constexpr std::string_view kPack = "a pack of fetched bytes";
constexpr std::size_t kAllocated = 1U << 20U;  // longer runs are written faster into allocated blocks

// Writes bytes to the pack. It does not map the file, because pages of a new mapping are cleared and allocated one by
// one. Blocks of zeros stay holes. Long runs are allocated first; if that fails, the write reports why.
Status put_in_pack(Transfer& transfer, std::uint64_t offset, std::span<const std::byte> bytes, bool allocates) {
  const int fd = transfer.pack->fd();
  const MutexLock one_at_a_time(transfer.writing);
  for (const Range& run : runs_to_write(fd, offset, bytes)) {
    if (allocates && run.length >= kAllocated) static_cast<void>(allocate(fd, offset + run.offset, run.length, kPack));
    WEFT_CHECK(write_exact(fd, offset + run.offset, bytes.subspan(run.offset, run.length), kPack));
  }
  return {};
}

}  // namespace

// Writes the bytes of a task to the pack, if `room` says that there is space for them. Without space, bytes that a
// reader waits for pass to it from memory.
Status Fetcher::keep_or_pass(FetchTask& task, const Status& room, std::span<const std::byte> bytes) {
  Status kept = room.ok() ? put_in_pack(*task.transfer, task.range().offset, bytes, room_.is_ample()) : room;
  if (kept.ok() || task.traffic == Traffic::ahead || kept.error().code != Errc::no_space) return kept;
  auto passed = passing_pack(bytes);
  if (passed.ok()) {
    task.passed = std::move(passed).value();
    return {};
  }
  Error error = std::move(passed).error();
  if (error.code == Errc::no_space) error.code = Errc::io;  // the fetcher would try again
  return error;
}

// True while the publisher may still lack bytes: other nodes hear of a version before the index of its publisher has
// its bytes.
bool Fetcher::is_young(const Transfer& transfer) const {
  return Clock::now() < transfer.young_until && options_.has_member(transfer.publisher);
}

// Wakes a worker to fetch the next bytes while this thread verifies and writes.
void Fetcher::wake_reader() {
  {
    const MutexLock lock(state_.mutex);
    if (state_.queue.is_idle()) return;
  }
  state_.work.notify_one();
}

Result<std::vector<Digest>> Fetcher::move(FetchTask& task, const std::vector<ChunkRun>& runs) {
  Transfer& transfer = *task.transfer;
  const Range range = task.range();
  const Status room = room_.make_room(*transfer.pack, range.length);
  if (!room.ok() && (task.traffic == Traffic::ahead || room.error().code != Errc::no_space)) return room.error();
  FetchSources::Request request{transfer.manifest, runs, {}, task.young, waited_until(task)};
  request.aid.traffic = task.traffic;
  request.aid.is_wanted = [this] {
    const MutexLock lock(state_.mutex);
    return !state_.ending;
  };
  request.aid.came = [this] { wake_reader(); };
  request.aid.subject = transfer.subject;
  bases_.lend(transfer.bases, runs, request.aid);
  auto got = sources_.read(request);
  bases_.note_coded(transfer.bases, request.aid.coded);
  if (!got.ok()) return std::move(got).error();
  WEFT_CHECK(keep_or_pass(task, room, got->read.bytes.bytes()));
  log_debug(LogCategory::fetch, "transfer {}: {} bytes at {} from {}", transfer.log_id, range.length, range.offset,
            got->name);
  sources_.taken(*got);
  return std::move(got->read.digests);
}

// True if the sources were silent, or the publisher has left the cluster. While other units of the file arrive, or a
// reader has not waited long, the fetcher then asks for a unit again.
bool Fetcher::may_still_come(const Transfer& transfer, const Error& error) const {
  return was_silent(error) || (error.code == Errc::not_found && !options_.has_member(transfer.publisher));
}

// Returns the end of the wait for a task. Late units have used up a part of the patience, so they wait only until their
// sources have been silent for `patience`.
Fetcher::Clock::time_point Fetcher::waited_until(const FetchTask& task) const {
  const MutexLock lock(state_.mutex);
  const Transfer& transfer = *task.transfer;
  return transfer.was_put_back(task.unit) ? transfer.silent_from(task.unit) + options_.patience
                                          : Clock::time_point::max();
}

// Sets the outcome of a task's units. Releases the transfer before readers can see the outcome, so that the task does
// not keep it open.
void Fetcher::ended(FetchTask& task, const Result<std::vector<Digest>>& digests, Clock::time_point begun) {
  const bool comes_later = !digests.ok() && task.young && digests.error().code == Errc::not_found;
  if (!digests.ok())
    log_debug(LogCategory::fetch, "transfer {}: no bytes at {}: {}", task.transfer->log_id, task.range().offset,
              digests.error().message);
  const MutexLock lock(state_.mutex);
  state_.queue.ended(task);
  if (digests.ok() && !task.same) rate_.arrived(task.range().length, begun, Clock::now());
  const bool is_refused = !digests.ok() && is_refusal(task.traffic, digests.error());
  const bool may_come = !digests.ok() && !is_refused && !comes_later && may_still_come(*task.transfer, digests.error());
  const auto now = Clock::now();
  for (std::size_t unit = task.unit; unit < task.end; ++unit) {
    const bool is_late = may_come && now < task.transfer->silent_from(unit) + options_.patience;
    if (comes_later || is_late) task.transfer->ask_later();
    if (is_refused || comes_later || is_late) {
      task.transfer->put_back(unit, is_late);
      state_.queue.add(task.transfer, unit, task.traffic);
      continue;
    }
    if (!digests.ok() && !task.transfer->file && task.end - task.unit > 1) {
      task.transfer->part(unit);
      if (task.transfer->was_asked(unit)) state_.queue.want(task.transfer, unit);
      continue;
    }
    if (!digests.ok()) {
      task.transfer->fail(unit, digests.error());
      continue;
    }
    if (task.passed)
      task.transfer->pass(unit);
    else
      task.transfer->arrive(unit, (*digests)[unit - task.unit]);
  }
  if (task.passed) passing_.put(task.runs(), task.passed);
  if (!digests.ok()) state_.work.notify_one();  // a worker must look at the queue, because a reader's thread does not
  task.transfer.reset();
  if (room_.is_over() || state_.table.due(state_.ending)) state_.keep.notify_one();
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
  ended(task, digests, begun);
  state_.arrived.notify_all();
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
  return {cold_, rate_.bytes_per_s(), keeps};
}

FetchStatus Fetcher::status() const {
  const MutexLock lock(state_.mutex);
  FetchStatus status;
  status.local = local_;
  status.sources = sources_.counts();
  status.transfers = state_.table.size();
  status.waiting = state_.queue.units();
  status.manifests = manifests_.fetched();
  status.problem = sources_.problem();
  FetchBases::Counts coded = bases_.counts();
  status.coded = coded.all;
  status.last_coded = std::move(coded.last);
  return status;
}

}  // namespace weft
