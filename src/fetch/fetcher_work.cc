// The threads of a Fetcher. Workers take tasks, ask sources, and write verified bytes. The keeper adds complete blobs
// to the store's index, many at a time.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "fetch/fetcher.h"

namespace weft {
namespace {

constexpr auto kSourcePoll = std::chrono::milliseconds(20);  // between polls for a free source
constexpr auto kLetGoPoll = std::chrono::milliseconds(50);
constexpr auto kKeepTick = std::chrono::milliseconds(250);

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
  if (!room.ok() && (task.traffic != Traffic::foreground || room.error().code != Errc::no_space)) return room.error();
  FetchSources::Request request{transfer.manifest, runs, {}, task.young, waited_until(task)};
  request.aid.traffic = task.traffic;
  request.aid.is_wanted = [this] { return !state_.is_ending(); };
  request.aid.is_waited_for = [this, &task] { return state_.is_waited_for(task); };
  request.aid.came = [this] { state_.wake_worker(); };
  request.aid.subject = transfer.subject;
  bases_.lend(transfer.bases, runs, request.aid);
  auto got = sources_.read(request);
  bases_.note_coded(transfer.bases, request.aid.coded);
  if (!got.ok()) return std::move(got).error();
  WEFT_CHECK(outcomes_.keep_or_pass(task, room, got->read.bytes.bytes()));
  log_debug(LogCategory::fetch, "{} bytes at {} from {}", range.length, range.offset, got->name);
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
  const LogWork work("transfer", task.transfer->log_id);
  const auto begun = Clock::now();
  const auto runs = task.runs();
  const Digest manifest = task.transfer->manifest;
  Result<std::vector<Digest>> digests = std::vector<Digest>();
  if (task.same) {
    auto copied = same_.copy(task);
    if (copied.ok() && !*copied) return;
    digests = copied.ok() ? Result<std::vector<Digest>>(**std::move(copied)) : std::move(copied).error();
  } else {
    task.young = is_young(*task.transfer);
    digests = move(task, runs);
    if (digests.ok()) same_.compare(task);
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
    state_.work.wait_for(lock, kSourcePoll);
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

// Records the outcome of adding complete blobs to the index.
void Fetcher::added_whole(Transfer& transfer, const std::vector<FetchedBlob>& blobs, const Status& added) {
  if (!added.ok()) log_warning("{}: fetched bytes are not kept: {}", transfer.subject, added.error().message);
  log_debug(LogCategory::fetch, "{} blobs for the index", blobs.size());
  if (!added.ok()) sources_.note_problem(added.error().message);
  state_.table.added(transfer, blobs, added);
  state_.arrived.notify_all();
}

void Fetcher::keep() {
  UniqueLock lock(state_.mutex);
  for (;;) {
    while (const auto transfer = state_.table.due(state_.ending)) {
      const LogWork work("transfer", transfer->log_id);
      const std::vector<FetchedBlob> blobs = transfer->take_whole();
      transfer->adding = true;
      lock.unlock();
      const auto added = transfer->pack->add(blobs);  // waits for syncs of the disk
      lock.lock();
      // The lock is held until this thread has let go of the transfer: let_go() ends when nobody has it.
      added_whole(*transfer, blobs, added.ok() ? Status() : Status(added.error()));
    }
    state_.table.drop_idle();
    state_.passing.drop_older(options_.kept);
    if (state_.ending) return;
    if (room_.is_over()) {
      lock.unlock();
      room_.keep_bound();
      lock.lock();
    }
    state_.keep.wait_for(lock, kKeepTick);
  }
}

void Fetcher::let_go() {
  UniqueLock lock(state_.mutex);
  while (!state_.ending && state_.table.close_idle()) {
    state_.keep.notify_one();
    state_.arrived.wait_for(lock, kLetGoPoll);
  }
  state_.table.drop_idle();
}

Status Fetcher::wait_indexed(VersionId version, std::span<const ContentId> blobs) {
  UniqueLock lock(state_.mutex);
  const auto holders = state_.table.holders(blobs);
  for (;;) {
    if (auto result = state_.table.indexed(version, holders)) return *std::move(result);
    if (state_.ending) return {};
    state_.keep.notify_one();
    state_.arrived.wait_for(lock, kKeepTick);
  }
}

}  // namespace weft
