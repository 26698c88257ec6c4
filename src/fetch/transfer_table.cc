#include "fetch/transfer_table.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "blobs/read_memory.h"
#include "os/file_ops.h"
#include "os/sys.h"

namespace weft {
namespace {

// Each batch costs two syncs, which compete with readers for the disk, so it waits until nothing arrives. Bytes that
// are lost when the daemon dies are fetched again.
constexpr std::uint64_t kAddBytes = 2U << 30U;
constexpr auto kAddAfter = std::chrono::seconds(1);   // since the last unit of any transfer
constexpr auto kAddLatest = std::chrono::seconds(5);  // since the last unit of the transfer
constexpr auto kUnread = std::chrono::seconds(1);

std::uint64_t disk_bytes_of(const FetchPack& pack) {
  const auto facts = stat_fd(pack.fd(), "a pack of fetched bytes");
  return facts.ok() ? allocated_bytes(*facts) : 0;
}

}  // namespace

void TransferTable::add(const std::shared_ptr<Transfer>& transfer) {
  transfers_.push_back(transfer);
  for (const Extent& blob : transfer->plan.blobs) places_[blob.id] = {transfer, blob.offset};
}

const TransferPlace* TransferTable::find(const ContentId& blob) const {
  const auto place = places_.find(blob);
  return place == places_.end() ? nullptr : &place->second;
}

OpenPlace TransferTable::arrived(const ChunkRun& run) const {
  const TransferPlace* place = find(run.id);
  if (place == nullptr) return {};
  const Transfer& transfer = *place->transfer;
  const std::uint64_t offset = place->offset + run.offset();
  const auto [first, end] = units_in(transfer.plan, {offset, run.length()});
  for (std::size_t unit = first; unit < end; ++unit)
    if (transfer.state(unit) != UnitState::here) return {};
  return {transfer.reader, offset};
}

bool TransferTable::fills(PackId pack) const {
  return std::ranges::any_of(transfers_, [pack](const auto& one) { return one->pack->id() == pack; });
}

std::uint64_t TransferTable::coming_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& transfer : transfers_) bytes += transfer->busy_bytes();
  return bytes;
}

std::uint64_t TransferTable::unlisted_bytes(const std::set<PackId>& listed) const {
  std::uint64_t bytes = 0;
  for (const auto& transfer : transfers_)
    if (!listed.contains(transfer->pack->id())) bytes += disk_bytes_of(*transfer->pack);
  return bytes;
}

std::shared_ptr<Transfer> TransferTable::due(bool all) const {
  const auto now = Clock::now();
  Clock::time_point moved{};
  for (const auto& transfer : transfers_) moved = std::max(moved, transfer->moved());
  for (const auto& transfer : transfers_) {
    if (transfer->whole_bytes() == 0 || transfer->adding) continue;
    const bool full = !transfer->file && transfer->complete();  // a complete group gets no more units
    if (all || full || transfer->hurries() || transfer->whole_bytes() >= kAddBytes || moved + kAddAfter <= now ||
        transfer->moved() + kAddLatest <= now)
      return transfer;
  }
  return nullptr;
}

void TransferTable::added(Transfer& transfer, std::span<const FetchedBlob> blobs, const Status& added) {
  transfer.adding = false;
  transfer.indexed = added;
  for (const FetchedBlob& blob : blobs) forget_place(blob.id, transfer);
}

void TransferTable::forget_place(const ContentId& blob, const Transfer& transfer) {
  if (const auto place = places_.find(blob); place != places_.end() && place->second.transfer.get() == &transfer)
    places_.erase(place);
}

TransferTable::Transfers TransferTable::holders(std::span<const ContentId> blobs) const {
  Transfers found;
  for (const ContentId& blob : blobs)
    if (const TransferPlace* place = find(blob)) found.insert(place->transfer);
  return found;
}

std::optional<Status> TransferTable::indexed(VersionId version, const Transfers& others) {
  bool open = false;
  for (const auto& transfer : transfers_) {
    if (transfer->version != version && !others.contains(transfer)) continue;
    if (transfer->whole_bytes() > 0 || transfer->adding) {
      transfer->hurry();
      open = true;
    } else if (!transfer->indexed.ok()) {
      return std::exchange(transfer->indexed, Status());
    }
  }
  return open ? std::nullopt : std::optional(Status());
}

void TransferTable::hurry_complete() {
  for (const auto& transfer : transfers_)
    if (transfer->complete()) transfer->hurry();
}

// True if a transfer can be dropped. If its pack keeps nothing, that is soon: the disk may have space by then.
bool TransferTable::is_past(const std::shared_ptr<Transfer>& transfer) const {
  if (transfer->busy_bytes() > 0 || transfer->adding || transfer->whole_bytes() > 0 || swarm_.has(*transfer))
    return false;
  const bool over = transfer->complete() && transfer->indexed.ok();
  const bool kept = transfer->pack->id() != kPassingPack || queue_.has(*transfer);
  if (!over && kept && transfer->used() != Clock::time_point() && transfer->used() + kept_ > Clock::now()) return false;
  log_debug(LogCategory::fetch, "transfer {} ends: {}", transfer->log_id, over ? "complete" : "incomplete, unused");
  return true;
}

void TransferTable::drop_idle() {
  std::erase_if(transfers_, [&](const std::shared_ptr<Transfer>& transfer) {
    if (!is_past(transfer)) return false;
    for (const Extent& blob : transfer->plan.blobs) forget_place(blob.id, *transfer);
    return true;
  });
  if (transfers_.empty()) drop_read_memory();
}

void TransferTable::drop_unused(Clock::duration unused) {
  queue_.drop_past();
  for (const auto& transfer : transfers_)
    if (transfer->used() + unused <= Clock::now() && !queue_.has(*transfer)) transfer->let_go();
  drop_idle();
}

bool TransferTable::close_idle() {
  bool open = false;
  queue_.drop_past();
  for (const auto& transfer : transfers_) {
    if (transfer->busy_bytes() > 0 || queue_.has(*transfer)) continue;
    transfer->let_go();
    if (transfer->whole_bytes() == 0 && !transfer->adding) continue;
    transfer->hurry();
    open = true;
  }
  return open;
}

bool TransferTable::close_unread() {
  bool closes = false;
  queue_.drop_past();
  for (const auto& transfer : transfers_) {
    const bool unread = transfer->used() + kUnread <= Clock::now();
    if (transfer->busy_bytes() > 0 || !(transfer->complete() || unread) || queue_.has(*transfer)) continue;
    transfer->let_go();
    if (transfer->whole_bytes() > 0) transfer->hurry();
    closes = true;
  }
  drop_idle();
  return closes;
}

}  // namespace weft
