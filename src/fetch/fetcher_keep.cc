// The thread that adds complete blobs to the store's index, many at a time.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "base/sha256.h"
#include "blobs/read_memory.h"
#include "fetch/fetcher.h"
#include "os/sys.h"

namespace weft {
namespace {

// Each batch costs two syncs, which compete with readers for the disk, so the thread waits until nothing arrives. Bytes
// that are lost when the daemon dies are fetched again.
constexpr std::uint64_t kAddBytes = 2U << 30U;
constexpr auto kAddAfter = std::chrono::seconds(1);   // since the last unit of any transfer
constexpr auto kAddLatest = std::chrono::seconds(5);  // since the last unit of the transfer
constexpr auto kTick = std::chrono::milliseconds(250);
constexpr auto kUnread = std::chrono::seconds(1);
constexpr auto kCloseWait = std::chrono::seconds(2);

}  // namespace

std::shared_ptr<Transfer> Fetcher::due() {
  const auto now = Clock::now();
  Clock::time_point moved{};
  for (const auto& transfer : transfers_) moved = std::max(moved, transfer->moved());
  for (const auto& transfer : transfers_) {
    if (transfer->whole_bytes() == 0 || transfer->adding) continue;
    const bool full = !transfer->file && transfer->complete();  // a complete group gets no more units
    if (state_.ending || full || transfer->hurries() || transfer->whole_bytes() >= kAddBytes ||
        moved + kAddAfter <= now || transfer->moved() + kAddLatest <= now)
      return transfer;
  }
  return nullptr;
}

// Records the outcome of adding complete blobs to the index.
void Fetcher::added_whole(Transfer& transfer, const std::vector<FetchedBlob>& blobs, const Status& added) {
  if (!added.ok()) log_warning("fetched bytes are not kept: {}", added.error().message);
  log_debug(LogCategory::fetch, "transfer {}: {} blobs for the index", transfer.log_id, blobs.size());
  transfer.adding = false;
  transfer.indexed = added;
  if (!added.ok()) sources_.note_problem(added.error().message);
  for (const FetchedBlob& blob : blobs)
    if (const auto home = homes_.find(blob.id); home != homes_.end() && home->second.transfer.get() == &transfer)
      homes_.erase(home);
  state_.arrived.notify_all();
}

// Drops transfers that are complete or unused. Their readers keep the runs they have; the next request for a missing
// blob begins a new transfer. If the pack keeps nothing, that happens soon: the disk may have space by then.
void Fetcher::drop_idle() {
  const auto now = Clock::now();
  std::erase_if(transfers_, [&](const std::shared_ptr<Transfer>& transfer) WEFT_REQUIRES(state_.mutex) {
    if (transfer->busy_bytes() > 0 || transfer->adding || transfer->whole_bytes() > 0 || state_.swarm.has(*transfer))
      return false;
    const bool over = transfer->complete() && transfer->indexed.ok();
    const bool kept = transfer->pack->id() != kPassingPack || state_.queue.has(*transfer);
    if (!over && kept && transfer->used() != Clock::time_point() && transfer->used() + options_.kept > now)
      return false;
    log_debug(LogCategory::fetch, "transfer {} ends: {}", transfer->log_id, over ? "complete" : "incomplete, unused");
    for (const Extent& blob : transfer->plan.blobs)
      if (const auto home = homes_.find(blob.id); home != homes_.end() && home->second.transfer == transfer)
        homes_.erase(home);
    return true;
  });
  if (transfers_.empty()) drop_read_memory();
}

// Keeps the number of open transfers, and so of descriptors, within its bound: closes complete and unread ones. While
// readers use all of them, the bound is exceeded.
void Fetcher::limit_open() {
  UniqueLock lock(state_.mutex);
  for (const auto until = Clock::now() + kCloseWait; transfers_.size() >= kOpenTransfersMax && !state_.ending;) {
    bool ends = false;
    state_.queue.drop_past();
    for (const auto& transfer : transfers_) {
      const bool unread = transfer->used() + kUnread <= Clock::now();
      if (transfer->busy_bytes() > 0 || !(transfer->complete() || unread) || state_.queue.has(*transfer)) continue;
      transfer->let_go();
      if (transfer->whole_bytes() > 0) transfer->hurry();
      ends = true;
    }
    drop_idle();
    if (!ends || Clock::now() >= until || transfers_.size() < kOpenTransfersMax) return;
    state_.keep.notify_one();
    state_.arrived.wait_for(lock, kTick);
  }
}

void Fetcher::keep() {
  UniqueLock lock(state_.mutex);
  for (;;) {
    while (const auto transfer = due()) {
      const std::vector<FetchedBlob> blobs = transfer->take_whole();
      transfer->adding = true;
      lock.unlock();
      const auto added = transfer->pack->add(blobs);  // waits for syncs of the disk
      lock.lock();
      // The lock is held until this thread has let go of the transfer: let_go() ends when nobody has it.
      added_whole(*transfer, blobs, added.ok() ? Status() : Status(added.error()));
    }
    drop_idle();
    passing_.drop_older(options_.kept);
    if (state_.ending) return;
    if (over_) {
      lock.unlock();
      stay_within_cache();
      lock.lock();
    }
    state_.keep.wait_for(lock, kTick);
  }
}

Status Fetcher::wait_indexed(VersionId version) {
  UniqueLock lock(state_.mutex);
  for (;;) {
    bool open = false;
    for (const auto& transfer : transfers_) {
      if (transfer->version != version) continue;
      if (transfer->whole_bytes() > 0 || transfer->adding) {
        transfer->hurry();
        open = true;
      } else if (!transfer->indexed.ok()) {
        return std::exchange(transfer->indexed, Status());
      }
    }
    if (!open || state_.ending) return {};
    state_.keep.notify_one();
    state_.arrived.wait_for(lock, kTick);
  }
}

}  // namespace weft
