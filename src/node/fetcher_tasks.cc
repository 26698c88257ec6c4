// Which of what is wanted is asked for next: in order, but for what nobody has time for now.
#include <utility>

#include "node/fetcher_impl.h"

namespace weft {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(20);  // whether somebody has time for what waits
constexpr std::size_t kLookedMax = 64;                      // of what waits
constexpr std::uint64_t kTaskBytesMax = 4U << 20U;          // a good size for one request
constexpr std::size_t kTaskUnitsMax = 80;

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

std::optional<Fetcher::Task> Fetcher::next() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || !wanted_.empty() || !ahead_.empty(); });
    if (ending_) return {};
    for (std::deque<Task>* queue : {&wanted_, &ahead_})
      if (auto task = take_ready(*queue)) return task;
    if (!wanted_.empty() || !ahead_.empty()) wake_.wait_for(lock, kLookAgain);
  }
}

// The first that a source has time for.
std::optional<Fetcher::Task> Fetcher::take_ready(std::deque<Task>& queue) {
  std::size_t looked = 0;
  for (auto at = queue.begin(); at != queue.end() && looked < kLookedMax; ++looked) {
    if (at->transfer->state(at->unit) != UnitState::queued) {  // it was asked for twice
      at = queue.erase(at);
      continue;
    }
    if (must_wait(*at)) {
      ++at;
      continue;
    }
    Task task = *at;
    queue.erase(at);
    task.end = task.unit;
    while (goes_on(task)) task.transfer->begin(task.end++);
    return task;
  }
  return {};
}

// What follows is asked for with it, where that is wanted too.
bool Fetcher::goes_on(const Task& task) {
  const auto& units = task.transfer->plan.units;
  if (task.end == units.size() || task.transfer->state(task.end) != UnitState::queued) return false;
  if (task.end == task.unit) return true;
  const FetchUnit& next = units[task.end];
  const Range range = task.range();
  return next.offset == range.offset + range.length && range.length + next.length <= kTaskBytesMax &&
         task.end - task.unit < kTaskUnitsMax;
}

// Whoever would be asked first has too much to do.
bool Fetcher::must_wait(const Task& task) const {
  const ChunkRun& run = task.transfer->plan.units[task.unit].run;
  const auto now = Clock::now();
  for (const auto& source : sources_) {
    if (source->rests_until > now) continue;
    const Readiness readiness = source->source.unverified().readiness(task.transfer->manifest, std::span(&run, 1));
    if (readiness != Readiness::lacking) return readiness == Readiness::busy;
  }
  return false;
}

}  // namespace weft
