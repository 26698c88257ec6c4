// The thread that adds complete blobs to the store's index, many at a time.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "fetch/fetcher.h"

namespace weft {
namespace {

constexpr auto kLetGoPoll = std::chrono::milliseconds(50);
constexpr auto kKeepTick = std::chrono::milliseconds(250);

}  // namespace

// Records the outcome of adding complete blobs to the index.
void Fetcher::added_whole(Transfer& transfer, const std::vector<FetchedBlob>& blobs, const Status& added) {
  if (!added.ok()) log_warning("fetched bytes are not kept: {}", added.error().message);
  log_debug(LogCategory::fetch, "transfer {}: {} blobs for the index", transfer.log_id, blobs.size());
  if (!added.ok()) sources_.note_problem(added.error().message);
  state_.table.added(transfer, blobs, added);
  state_.arrived.notify_all();
}

void Fetcher::keep() {
  UniqueLock lock(state_.mutex);
  for (;;) {
    while (const auto transfer = state_.table.due(state_.ending)) {
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

Status Fetcher::wait_indexed(VersionId version) {
  UniqueLock lock(state_.mutex);
  for (;;) {
    if (auto result = state_.table.indexed(version)) return *std::move(result);
    if (state_.ending) return {};
    state_.keep.notify_one();
    state_.arrived.wait_for(lock, kKeepTick);
  }
}

}  // namespace weft
