// Schedules queued units: in order, but skips units whose sources are busy.
#include <algorithm>
#include <utility>

#include "fetch/fetcher.h"

namespace weft {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(20);  // between polls for a free source
constexpr std::size_t kLookedMax = 64;                      // queued units to examine
constexpr std::uint64_t kTaskBytesMax = 4U << 20U;          // a good size for one request
constexpr std::size_t kTaskUnitsMax = 80;
// The least number of tasks for the queued units: some are verified and written while others arrive.
constexpr std::size_t kPartsMin = 4;
constexpr std::uint64_t kOwnBytesMax = 64U << 10U;  // the largest unit that its reader moves itself
constexpr std::size_t kOwnUnitsMax = 1;             // the longest queue for that

// Returns how many workers may ask at a time for bytes that no known source has, or whose sources are silent. Such a
// request can last as long as a silence (weft/deadline.h). The other workers take what can come.
unsigned absent_max(unsigned workers) {
  return std::max(1U, workers / 2);
}

}  // namespace

Range Fetcher::Task::range() const {
  const auto& units = transfer->plan.units;
  const std::uint64_t begin = units[unit].offset;
  return {begin, units[end - 1].offset + units[end - 1].length - begin};
}

std::vector<ChunkRun> Fetcher::Task::runs() const {
  std::vector<ChunkRun> out;
  for (std::size_t i = unit; i < end; ++i) out.push_back(transfer->plan.units[i].run);
  return out;
}

// Returns the readiness of the source that would be asked first. A unit that equals its base needs no source, and is
// always ready.
Readiness Fetcher::readiness_of(const std::shared_ptr<Transfer>& transfer, std::size_t unit) const {
  if (transfer->is_same(unit)) return Readiness::ready;
  if (transfer->asked_from() > Clock::now()) return Readiness::busy;
  return sources_.readiness(transfer->manifest, transfer->plan.units[unit].run);
}

// Returns the readiness of a unit that no reader waits for. The first unit of a transfer comes alone, so that its
// reader waits for no other bytes, unless its sources have fallen silent. The first unit of a blob with a base comes
// alone too.
Readiness Fetcher::readiness_ahead(const Task& task) const {
  const auto first = task.transfer->begins();
  const bool first_comes = first && readiness_of(task.transfer, *first) != Readiness::lacking;
  if (first_comes || task.transfer->awaits_comparison(task.unit)) return Readiness::busy;
  return readiness_of(task.transfer, task.unit);
}

// Returns the next task; nothing at the end. One worker polls for a free source, and wakes the next one before it
// starts to work. One worker copies chunks from the base while others fetch; all copy if nothing else is left.
std::optional<Fetcher::Task> Fetcher::next() {
  UniqueLock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this]() WEFT_REQUIRES(mutex_) { return ending_ || !is_idle(); });
    if (ending_) return {};
    auto task = take_wanted();
    if (auto unit = task ? nullptr : swarm_.take_offer()) task.emplace().offered = std::move(unit);
    if (!task && same_running_ == 0) task = take_same();
    if (!task) task = take_ahead();
    if (!task) task = take_same();
    if (task) {
      wake_.notify_one();
      return task;
    }
    if (is_idle()) continue;
    if (one_polls_) {
      wake_.wait(lock);
      continue;
    }
    one_polls_ = true;
    wake_.wait_for(lock, kLookAgain);
    one_polls_ = false;
  }
}

// A reader moves a small unit itself, because it takes longer to wake another thread.
std::optional<Fetcher::Task> Fetcher::take_own(const std::vector<Part>& parts) {
  if (wanted_.empty() || wanted_.size() > kOwnUnitsMax) return {};
  const Task& last = wanted_.back();
  const bool own = std::ranges::any_of(parts, [&last](const Part& part) {
    return !part.place.pack && part.home.transfer == last.transfer && part.units.first <= last.unit &&
           last.unit < part.units.second;
  });
  const std::size_t at = wanted_.size() - 1;
  if (!own || last.transfer->plan.units[last.unit].length > kOwnBytesMax || dropped(wanted_, at)) return {};
  if (readiness_of(last.transfer, last.unit) != Readiness::ready) return {};
  return take(wanted_, at, Readiness::ready);
}

// Takes the first wanted unit that has a free source, or has no source and needs an error.
std::optional<Fetcher::Task> Fetcher::take_wanted() {
  std::size_t at = 0;
  for (std::size_t looked = 0; at < wanted_.size() && looked < kLookedMax; ++looked) {
    if (dropped(wanted_, at)) continue;
    const Readiness readiness = readiness_of(wanted_[at].transfer, wanted_[at].unit);
    if (readiness == Readiness::ready) return take(wanted_, at, readiness);
    if (readiness == Readiness::lacking && absent_running_ < absent_max(options_.threads))
      return take(wanted_, at, readiness);
    ++at;
  }
  return {};
}

// Takes the first unit of a background fetch that a source can give now. If the sources of the first units are busy,
// looks at some later ones, chosen at random. Units without a source come last.
std::optional<Fetcher::Task> Fetcher::take_ahead() {
  std::optional<std::size_t> absent;
  std::size_t at = 0;
  for (std::size_t looked = 0; at < ahead_.size() && looked < kLookedMax; ++looked) {
    if (dropped(ahead_, at)) continue;
    const Readiness readiness = readiness_ahead(ahead_[at]);
    if (readiness == Readiness::ready) return take(ahead_, at, readiness);
    if (readiness == Readiness::lacking && !absent) absent = at;
    ++at;
  }
  for (std::size_t looked = at; looked < std::min(ahead_.size(), 2 * kLookedMax); ++looked) {
    const std::size_t any = random_() % ahead_.size();
    const bool is_queued = ahead_[any].transfer->state(ahead_[any].unit) == UnitState::queued;
    if (is_queued && readiness_ahead(ahead_[any]) == Readiness::ready) return take(ahead_, any, Readiness::ready);
  }
  if (!absent || absent_running_ >= absent_max(options_.threads)) return {};
  return take(ahead_, *absent, Readiness::lacking);
}

// Drops a queue entry whose unit was queued twice and is being fetched or has arrived. False if the unit is still
// queued.
bool Fetcher::dropped(Queue& queue, std::size_t at) {
  if (queue[at].transfer->state(queue[at].unit) == UnitState::queued) return false;
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

// Drops all such entries, because they keep their transfers open.
void Fetcher::drop_past() {
  const auto past = [](const Task& task) { return task.transfer->state(task.unit) != UnitState::queued; };
  std::erase_if(wanted_, past);
  std::erase_if(ahead_, past);
  std::erase_if(same_, past);
  swarm_.drop_past();
}

namespace {

// Returns the first unit of a task with this unit. In a group, the queued units before it in its batch come along, so
// that a reader that goes backwards needs no more requests.
std::size_t begin_of(const Transfer& transfer, std::size_t unit) {
  if (transfer.file || transfer.is_alone(unit)) return unit;
  const std::size_t first = batch_of(transfer.plan, unit).first;
  while (unit > first && transfer.state(unit - 1) == UnitState::queued && !transfer.is_alone(unit - 1)) --unit;
  return unit;
}

}  // namespace

Fetcher::Task Fetcher::take(Queue& queue, std::size_t at, Readiness readiness) {
  Task task = queue[at];
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(at));
  Transfer& transfer = *task.transfer;
  const std::size_t wanted = task.unit;
  task.unit = task.end = begin_of(transfer, wanted);
  while (goes_on(task, readiness)) transfer.begin(task.end++);
  task.traffic = &queue == &wanted_ ? Traffic::foreground : Traffic::ahead;
  task.absent = readiness == Readiness::lacking;
  if (task.absent) ++absent_running_;
  task.same = transfer.is_same(task.unit);
  if (task.same) ++same_running_;
  if (task.end <= wanted) queue.push_front({task.transfer, wanted});  // the source is not ready for all earlier units
  return task;
}

// True if the next unit can join this task: it is queued and adjacent, and the task stays small enough. A task has one
// chunk until the first unit of the transfer has arrived, so that its reader waits for no other bytes.
bool Fetcher::goes_on(const Task& task, Readiness readiness) const {
  const Transfer& transfer = *task.transfer;
  const auto& units = transfer.plan.units;
  if (task.end == units.size() || transfer.state(task.end) != UnitState::queued) return false;
  if (task.end == task.unit) return true;
  if (transfer.is_alone(task.unit) || transfer.is_alone(task.end)) return false;
  if (transfer.is_same(task.end) != transfer.is_same(task.unit) || transfer.is_uncompared(task.end)) return false;
  const FetchUnit& next = units[task.end];
  const Range range = task.range();
  const bool little = transfer.arrived() == Clock::time_point{};
  const std::uint64_t share = (wanted_.size() + ahead_.size() + same_.size()) / kPartsMin * kDigestChunk;
  const std::uint64_t bytes_max = little ? kDigestChunk : std::clamp(share, kDigestChunk, kTaskBytesMax);
  return next.offset == range.offset + range.length && range.length + next.length <= bytes_max &&
         task.end - task.unit < kTaskUnitsMax && readiness_of(task.transfer, task.end) == readiness;
}

}  // namespace weft
