#include "fetch/unit_outcomes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "fetch/passing_bytes.h"
#include "os/holes.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::string_view kPack = "a pack of fetched bytes";
constexpr std::size_t kAllocated = 1U << 20U;  // longer runs are written faster into allocated blocks

// Writes bytes to the pack. It does not map the file, because pages of a new mapping are cleared and allocated one by
// one. Blocks of zeros stay holes. Long runs are allocated first; if that fails, the write reports why.
Status put_in_pack(Transfer& transfer, std::uint64_t offset, std::span<const std::byte> bytes, bool allocates)
    WEFT_EXCLUDES(transfer.writing) {
  const int fd = transfer.pack->fd();
  const MutexLock one_at_a_time(transfer.writing);
  for (const Range& run : runs_to_write(fd, offset, bytes)) {
    if (allocates && run.length >= kAllocated) static_cast<void>(allocate(fd, offset + run.offset, run.length, kPack));
    WEFT_CHECK(write_exact(fd, offset + run.offset, bytes.subspan(run.offset, run.length), kPack));
  }
  return {};
}

}  // namespace

Status UnitOutcomes::keep_or_pass(FetchTask& task, const Status& room, std::span<const std::byte> bytes) const {
  Status kept = room.ok() ? put_in_pack(*task.transfer, task.range().offset, bytes, room_.is_ample()) : room;
  if (kept.ok() || task.traffic != Traffic::foreground || kept.error().code != Errc::no_space) return kept;
  auto passed = passing_pack(bytes);
  if (passed.ok()) {
    task.passed = std::move(passed).value();
    return {};
  }
  Error error = std::move(passed).error();
  if (error.code == Errc::no_space) error.code = Errc::io;  // the fetcher would try again
  return error;
}

// True if the sources were silent, or the publisher has left the cluster. While other units of the file arrive, or a
// reader has not waited long, the fetcher then asks for a unit again.
bool UnitOutcomes::may_still_come(const Transfer& transfer, const Error& error) const {
  return was_silent(error) || (error.code == Errc::not_found && !options_.has_member(transfer.publisher));
}

void UnitOutcomes::set_failed(FetchTask& task, const Error& error) {
  Transfer& transfer = *task.transfer;
  const bool comes_later = task.young && error.code == Errc::not_found;
  const bool may_come = !comes_later && may_still_come(transfer, error);
  const auto now = Clock::now();
  for (std::size_t unit = task.unit; unit < task.end; ++unit) {
    const bool is_late = may_come && now < transfer.silent_from(unit) + options_.patience;
    if (comes_later || is_late) {
      transfer.ask_later();
      transfer.put_back(unit, is_late);
      state_.queue.add(task.transfer, unit, task.traffic);
    } else if (!transfer.file && task.end - task.unit > 1) {
      transfer.part(unit);
      if (transfer.was_asked(unit)) state_.queue.want(task.transfer, unit);
    } else {
      transfer.fail(unit, error);
    }
  }
  state_.work.notify_one();  // a worker must look at the queue, because a reader's thread does not
}

void UnitOutcomes::set(FetchTask& task, const Result<std::vector<Digest>>& digests, Clock::time_point begun) {
  if (!digests.ok()) log_debug(LogCategory::fetch, "no bytes at {}: {}", task.range().offset, digests.error().message);
  {
    const MutexLock lock(state_.mutex);
    if (!digests.ok()) set_failed(task, digests.error());
    if (digests.ok() && !task.same && task.traffic != Traffic::staging)
      state_.rate.arrived(task.range().length, begun, Clock::now());
    for (std::size_t unit = task.unit; digests.ok() && unit < task.end; ++unit) {
      if (task.passed)
        task.transfer->pass(unit);
      else
        task.transfer->arrive(unit, (*digests)[unit - task.unit]);
    }
    state_.queue.ended(task);
    if (task.passed) state_.passing.put(task.runs(), task.passed);
    task.transfer.reset();  // before readers see the outcome, so that the task does not keep it open
    if (room_.is_over() || state_.table.due(state_.ending)) state_.keep.notify_one();
  }
  state_.arrived.notify_all();
}

}  // namespace weft
