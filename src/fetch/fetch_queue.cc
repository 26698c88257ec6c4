#include "fetch/fetch_queue.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace weft {
namespace {

constexpr std::size_t kExaminedMax = 64;            // queued units to examine
constexpr std::uint64_t kTaskBytesMax = 4U << 20U;  // a good size for one request
constexpr std::size_t kTaskUnitsMax = 80;
// The least number of tasks for the queued units: some are verified and written while others arrive.
constexpr std::size_t kPartsMin = 4;
constexpr std::uint64_t kOwnBytesMax = 64U << 10U;  // the largest unit that its reader moves itself
constexpr std::size_t kOwnUnitsMax = 1;             // the longest queue for that

// Moves the entries for which `goes` is true to the end of another queue, in their order.
template <class Entries, class Goes>
void move_entries(Entries& from, Entries& to, const Goes& goes) {
  const auto moved = std::stable_partition(from.begin(), from.end(), std::not_fn(goes));
  std::move(moved, from.end(), std::back_inserter(to));
  from.erase(moved, from.end());
}

// Returns the first unit of a task with this unit. In a group, the queued units before it in its batch come along, so
// that a reader that goes backwards needs no more requests.
std::size_t begin_of(const Transfer& transfer, std::size_t unit) {
  if (transfer.file || transfer.is_alone(unit)) return unit;
  const std::size_t first = batch_of(transfer.plan, unit).first;
  while (unit > first && transfer.state(unit - 1) == UnitState::queued && !transfer.is_alone(unit - 1)) --unit;
  return unit;
}

FetchQueue::Units units_of_blob(const Transfer& transfer, std::size_t blob) {
  const Extent& extent = transfer.plan.blobs[blob];
  return units_in(transfer.plan, {extent.offset, extent.id.length});
}

}  // namespace

Range FetchTask::range() const {
  const auto& units = transfer->plan.units;
  const std::uint64_t begin = units[unit].offset;
  return {begin, units[end - 1].offset + units[end - 1].length - begin};
}

std::vector<ChunkRun> FetchTask::runs() const {
  std::vector<ChunkRun> out;
  for (std::size_t i = unit; i < end; ++i) out.push_back(transfer->plan.units[i].run);
  return out;
}

bool FetchTask::is_waited_for() const {
  const auto first = transfer->waited_for.lower_bound(unit);
  return first != transfer->waited_for.end() && *first < end;
}

// A request for bytes that no known source has, or whose sources are silent, can last as long as a silence
// (weft/deadline.h). The other workers take what can come.
FetchQueue::FetchQueue(SwarmFetch& swarm, const FetchSources& sources, unsigned workers,
                       std::shared_ptr<const PaceGate> gate)
    : swarm_(swarm),
      sources_(sources),
      absent_max_(std::max(1U, workers / 2)),
      gate_(std::move(gate)),
      workers_(workers) {}

// False while the gate holds back this class, and enough of its tasks run.
bool FetchQueue::may_begin(Traffic background) const {
  if (!gate_ || !gate_->holds(background, PaceEnd::origin))
    return true;  // a peer's bytes are held back no more than that
  const unsigned most = workers_ / (background == Traffic::staging ? 4 : 2);
  return fetching_.at(static_cast<std::size_t>(background)) < std::max(1U, most);
}

void FetchQueue::want(const std::shared_ptr<Transfer>& transfer, std::size_t unit) {
  const UnitState state = transfer->state(unit);
  if (state != UnitState::here) transfer->waited_for.insert(unit);
  if (state == UnitState::here || state == UnitState::running || state == UnitState::in_swarm) return;
  const bool begins = state == UnitState::idle && transfer->plan.units[unit].offset < kFileStart;
  const bool waits = (begins || state == UnitState::held) && swarm_.takes(*transfer, unit);
  if (!waits) return want_now(transfer, unit);
  if (begins) add_ahead(transfer, unit);
}

void FetchQueue::want_now(const std::shared_ptr<Transfer>& transfer, std::size_t unit) {
  transfer->queue(unit);
  wanted_.push_back({transfer, unit});
}

void FetchQueue::want_ahead(const std::shared_ptr<Transfer>& transfer, Units units) {
  for (std::size_t unit = units.first; unit < units.second; ++unit) {
    const UnitState state = transfer->state(unit);
    const bool comes = state == UnitState::queued || state == UnitState::running || state == UnitState::in_swarm;
    if (!comes && state != UnitState::here && state != UnitState::held) add_ahead(transfer, unit);
  }
}

void FetchQueue::want_batch(const std::shared_ptr<Transfer>& transfer, Units units) {
  for (std::size_t unit = units.first; unit < units.second; ++unit)
    if (transfer->state(unit) == UnitState::idle && !transfer->is_alone(unit)) add_ahead(transfer, unit);
}

void FetchQueue::add_ahead(const std::shared_ptr<Transfer>& transfer, std::size_t unit) {
  if (!transfer->comparison(unit).holds_others()) return begin_ahead(transfer, unit, background_of(*transfer));
  transfer->queue(unit, UnitState::held);
  holding_.insert(transfer);
}

// `ahead`: for a unit that is neither left to its swarm nor copied.
void FetchQueue::begin_ahead(const std::shared_ptr<Transfer>& transfer, std::size_t unit, Entries& ahead) {
  if (swarm_.takes(*transfer, unit)) return swarm_.add(transfer, unit);
  transfer->queue(unit);
  (transfer->is_same(unit) ? same_ : ahead).push_back({transfer, unit});
}

// Ends the hold of units of one blob: of the first if no unit of the blob comes, and after the comparison of all.
void FetchQueue::release(const std::shared_ptr<Transfer>& transfer, Units units) {
  Entries first;  // they were wanted before the units that are queued
  for (std::size_t unit = units.first; unit < units.second && !transfer->comparison(unit).holds_others(); ++unit)
    if (transfer->state(unit) == UnitState::held) begin_ahead(transfer, unit, first);
  Entries& background = background_of(*transfer);
  background.insert(background.begin(), first.begin(), first.end());
  if (transfer->held() == 0) holding_.erase(transfer);
}

void FetchQueue::add(const std::shared_ptr<Transfer>& transfer, std::size_t unit, Traffic traffic) {
  Entries& background = transfer->is_same(unit) ? same_ : background_of(*transfer);
  (traffic == Traffic::foreground ? wanted_ : background).push_back({transfer, unit});
}

void FetchQueue::set_class(const std::shared_ptr<Transfer>& transfer, Traffic background, bool all) {
  const bool keeps = background == Traffic::staging || !all;
  if (background == transfer->background || (keeps && has(*transfer))) return;
  Entries& before = background_of(*transfer);
  transfer->background = background;
  move_entries(before, background_of(*transfer), [&](const Entry& one) { return one.transfer == transfer; });
}

// Returns the readiness of the source that would be asked first. A unit that equals its base needs no source, and is
// always ready.
Readiness FetchQueue::readiness_of(const Transfer& transfer, std::size_t unit) const {
  if (transfer.is_same(unit)) return Readiness::ready;
  if (transfer.asked_from() > Transfer::Clock::now()) return Readiness::busy;
  return sources_.readiness(transfer.manifest, transfer.plan.units[unit].run);
}

// Returns the readiness of a unit that no reader waits for. The first unit of a transfer comes alone, so that its
// reader waits for no other bytes, unless its sources have fallen silent. A unit waits if a reader wanted another one
// of its blob, which is not compared yet.
Readiness FetchQueue::readiness_ahead(const Entry& entry) const {
  if (entry.transfer->comparison(entry.unit).is_awaited()) return Readiness::busy;
  const auto first = entry.transfer->begins();
  if (first && readiness_of(*entry.transfer, *first) != Readiness::lacking) return Readiness::busy;
  return readiness_of(*entry.transfer, entry.unit);
}

std::optional<FetchTask> FetchQueue::take() {
  auto task = take_wanted();
  if (auto unit = task ? nullptr : swarm_.take_offer()) task.emplace().offered = std::move(unit);
  if (!task && same_running_ == 0) task = take_same();
  if (!task) task = take_background(ahead_);
  if (!task) task = take_background(staging_);
  if (!task) task = take_same();
  return task;
}

// It takes longer to wake another thread than to move a small unit.
std::optional<FetchTask> FetchQueue::take_own(
    const std::function<bool(const Transfer& transfer, std::size_t unit)>& is_own) {
  if (wanted_.empty() || wanted_.size() > kOwnUnitsMax) return {};
  const Entry& last = wanted_.back();
  const std::size_t at = wanted_.size() - 1;
  if (!is_own(*last.transfer, last.unit) || last.transfer->plan.units[last.unit].length > kOwnBytesMax) return {};
  if (dropped(wanted_, at) || readiness_of(*last.transfer, last.unit) != Readiness::ready) return {};
  return take(wanted_, at);
}

// Takes the first wanted unit that has a free source, or has no source and needs an error.
std::optional<FetchTask> FetchQueue::take_wanted() {
  std::size_t at = 0;
  for (std::size_t examined = 0; at < wanted_.size() && examined < kExaminedMax; ++examined) {
    if (dropped(wanted_, at)) continue;
    const Readiness readiness = readiness_of(*wanted_[at].transfer, wanted_[at].unit);
    if (readiness == Readiness::ready) return take(wanted_, at);
    if (readiness == Readiness::lacking && absent_running_ < absent_max_) return take(wanted_, at, true);
    ++at;
  }
  return {};
}

// Takes the first unit of a background fetch that a source can give now. Units without a source come last.
std::optional<FetchTask> FetchQueue::take_background(Entries& entries) {
  if (!may_begin(&entries == &staging_ ? Traffic::staging : Traffic::ahead)) return {};
  std::optional<std::size_t> absent;
  std::size_t at = 0;
  for (std::size_t examined = 0; at < entries.size() && examined < kExaminedMax; ++examined) {
    if (dropped(entries, at)) continue;
    const Readiness readiness = readiness_ahead(entries[at]);
    if (readiness == Readiness::ready) return take(entries, at);
    if (readiness == Readiness::lacking && !absent) absent = at;
    ++at;
  }
  if (!absent || absent_running_ >= absent_max_) return {};
  return take(entries, *absent, true);
}

std::optional<FetchTask> FetchQueue::take_same() {
  while (!same_.empty())
    if (!dropped(same_, 0)) return take(same_, 0);
  return {};
}

// Drops an entry whose unit was queued twice and is being fetched or has arrived. False if the unit is still
// queued.
bool FetchQueue::dropped(Entries& entries, std::size_t at) {
  if (entries[at].transfer->state(entries[at].unit) == UnitState::queued) return false;
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

void FetchQueue::drop_past() {
  const auto past = [](const Entry& one) { return one.transfer->state(one.unit) != UnitState::queued; };
  std::erase_if(wanted_, past);
  std::erase_if(ahead_, past);
  std::erase_if(staging_, past);
  std::erase_if(same_, past);
  std::erase_if(holding_, [](const auto& transfer) { return transfer->held() == 0; });
  swarm_.drop_past();
}

FetchTask FetchQueue::take(Entries& entries, std::size_t at, bool absent) {
  FetchTask task{entries[at].transfer, entries[at].unit};
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at));
  Transfer& transfer = *task.transfer;
  const std::size_t wanted = task.unit;
  task.unit = task.end = begin_of(transfer, wanted);
  task.absent = absent;
  while (goes_on(task)) transfer.begin(task.end++);
  task.traffic = &entries == &wanted_ ? Traffic::foreground : transfer.background;
  if (task.absent) ++absent_running_;
  task.same = transfer.is_same(task.unit);
  task.counts = !task.same;
  ++(task.same ? same_running_ : fetching_.at(static_cast<std::size_t>(task.traffic)));
  if (task.end <= wanted) entries.push_front({task.transfer, wanted});  // the earlier units are a task of their own
  return task;
}

// True if the next unit can join this task: it is queued and adjacent, and the task stays small enough. A task has one
// chunk until the first unit of the transfer has arrived, so that its reader waits for no other bytes. Units without a
// source have tasks of their own, so that they keep no others waiting.
bool FetchQueue::goes_on(const FetchTask& task) const {
  const Transfer& transfer = *task.transfer;
  const auto& units = transfer.plan.units;
  if (task.end == units.size() || transfer.state(task.end) != UnitState::queued) return false;
  if (task.end == task.unit) return true;
  if (transfer.is_alone(task.unit) || transfer.is_alone(task.end)) return false;
  if (transfer.is_same(task.end) != transfer.is_same(task.unit) || transfer.comparison(task.end).is_due) return false;
  const FetchUnit& next = units[task.end];
  const Range range = task.range();
  const bool little = transfer.arrived() == Transfer::Clock::time_point{};
  const std::uint64_t share = size() / kPartsMin * kDigestChunk;
  const std::uint64_t bytes_max = little ? kDigestChunk : std::clamp(share, kDigestChunk, kTaskBytesMax);
  return next.offset == range.offset + range.length && range.length + next.length <= bytes_max &&
         task.end - task.unit < kTaskUnitsMax &&
         (readiness_of(transfer, task.end) == Readiness::lacking) == task.absent;
}

void FetchQueue::ended(const FetchTask& task) {
  if (task.absent) --absent_running_;
  if (task.same) --same_running_;
  if (task.counts) --fetching_.at(static_cast<std::size_t>(task.traffic));
  for (std::size_t unit = task.unit; unit < task.end; ++unit)
    if (task.transfer->comparison(unit).is_due)
      release(task.transfer, units_of_blob(*task.transfer, task.transfer->plan.units[unit].blob));
}

void FetchQueue::compared(const std::shared_ptr<Transfer>& transfer, Units units) {
  move_entries(background_of(*transfer), same_,
               [&](const Entry& one) { return one.transfer == transfer && transfer->is_same(one.unit); });
  release(transfer, units);
}

void FetchQueue::leave_same(const FetchTask& task) {
  Transfer& transfer = *task.transfer;
  const auto is_of_task = [&](std::size_t unit) {
    const std::size_t blob = transfer.plan.units[unit].blob;
    return blob >= transfer.plan.units[task.unit].blob && blob <= transfer.plan.units[task.end - 1].blob;
  };
  const auto goes = [&](const Entry& one) { return one.transfer == task.transfer && is_of_task(one.unit); };
  for (const Entry& one : same_)
    if (goes(one)) transfer.set_same(one.unit, false);
  move_entries(same_, background_of(transfer), goes);
}

void FetchQueue::leave_swarm(const Digest& manifest) {
  for (const auto& [transfer, unit] : swarm_.leave(manifest)) add(transfer, unit, Traffic::ahead);
  std::erase_if(holding_, [&](const auto& transfer) {
    if (transfer->manifest != manifest || transfer->is_read) return false;
    for (std::size_t unit = 0; transfer->held() > 0; ++unit)
      if (transfer->state(unit) == UnitState::held) transfer->queue(unit, UnitState::idle);
    return true;
  });
}

std::size_t FetchQueue::to_come() const {
  std::size_t units = swarm_.units();
  for (const auto& transfer : holding_) units += transfer->held();
  return units;
}

bool FetchQueue::has(const Transfer& transfer) const {
  const auto of_it = [&](const Entry& one) { return one.transfer.get() == &transfer; };
  return transfer.held() > 0 || std::ranges::any_of(wanted_, of_it) || std::ranges::any_of(ahead_, of_it) ||
         std::ranges::any_of(staging_, of_it) || std::ranges::any_of(same_, of_it) || swarm_.has(transfer);
}

}  // namespace weft
