// Chunks that are equal in a blob and its base, at the same offset. Their digests are compared once the first chunk of
// the blob has arrived with its proof. Equal chunks are copied locally, without a source, and verified like all others.
#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "base/sha256.h"
#include "fetch/fetcher.h"
#include "os/sys.h"

namespace weft {
namespace {

// Moves the tasks for which `goes` is true to the end of another queue, in their order.
template <class Queue, class Goes>
void move_tasks(Queue& from, Queue& to, const Goes& goes) {
  const auto moved = std::stable_partition(from.begin(), from.end(), std::not_fn(goes));
  std::move(moved, from.end(), std::back_inserter(to));
  from.erase(moved, from.end());
}

}  // namespace

std::optional<Fetcher::Task> Fetcher::take_same() {
  while (!same_.empty())
    if (!dropped(same_, 0)) return take(same_, 0, Readiness::ready);
  return {};
}

// Compares the blobs whose first chunk this task has fetched.
void Fetcher::compare(const Task& task) {
  Transfer& transfer = *task.transfer;
  std::vector<std::size_t> blobs;
  {
    const MutexLock lock(mutex_);
    for (std::size_t unit = task.unit; unit < task.end; ++unit) {
      const std::size_t blob = transfer.plan.units[unit].blob;
      if (transfer.is_uncompared(unit) && (blobs.empty() || blobs.back() != blob)) blobs.push_back(blob);
    }
  }
  for (const std::size_t blob : blobs) compare(task.transfer, blob);
}

// Compares a blob with its base, and marks the equal units. Does not wait for a base that is still being fetched:
// chunks come as differences, as far as their base is local.
void Fetcher::compare(const std::shared_ptr<Transfer>& transfer, std::size_t blob) {
  const Extent& extent = transfer->plan.blobs[blob];
  const VerifiedSource::Proof ours = sources_.known_proof(extent.id);
  std::vector<Digest> bases;
  if (const auto pair = transfer->bases->find(extent.id); pair && ours) {
    const ChunkRun whole{pair->base, 0, chunk_count(pair->base.length)};
    if (here_if_any(*this, std::span(&whole, 1)).front().pack)
      if (auto known = digests(pair->base); known.ok()) bases = *std::move(known);
  }
  const auto is_same = [&](std::uint64_t chunk) { return chunk < bases.size() && (*ours)[chunk] == bases[chunk]; };
  const auto [first, end] = units_in(transfer->plan, {extent.offset, extent.id.length});
  const MutexLock lock(mutex_);
  for (std::size_t unit = first; unit < end; ++unit) {
    const UnitState state = transfer->state(unit);
    if (state == UnitState::here || state == UnitState::running) continue;
    transfer->set_same(unit, is_same(transfer->plan.units[unit].run.first));
  }
  transfer->compared(blob, ours ? *ours : std::vector<Digest>());
  move_tasks(ahead_, same_, [&](const Task& one) { return one.transfer == transfer && transfer->is_same(one.unit); });
}

// Reads the chunks of a task from their bases. Returns the digests of the chunks; nothing if a base is missing or
// damaged.
std::optional<std::vector<Digest>> Fetcher::read_base(const Task& task, const std::vector<ChunkRun>& runs,
                                                      std::span<std::byte> to) {
  VersionBases& bases = *task.transfer->bases;
  std::vector<std::optional<BasePair>> pairs;
  pairs.reserve(runs.size());
  for (const ChunkRun& run : runs) pairs.push_back(bases.find(run.id));
  const std::vector<RunBase> places = bases_.places_of(pairs, runs);
  if (!bases_.are_allowed()) return {};
  std::vector<Digest> expected;
  {
    const MutexLock lock(mutex_);
    for (std::size_t unit = task.unit; unit < task.end; ++unit) expected.push_back(task.transfer->expected(unit));
  }
  for (const RunBase& base : places)
    if (!base.place.pack) return {};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::span<std::byte> part = to.first(runs[i].length());
    const bool is_read = read_exact(places[i].place.pack->fd(), places[i].place.offset, part, "a base").ok();
    if (!is_read || sha256(part) != expected[i]) {
      bases_.note_damage(bases, places[i].id);
      return {};
    }
    to = to.subspan(part.size());
  }
  return expected;
}

// Copies the units of a task from their bases to the pack. Returns the result of read_base().
Result<std::optional<std::vector<Digest>>> Fetcher::copy_same(Task& task, const std::vector<ChunkRun>& runs) {
  Transfer& transfer = *task.transfer;
  const Range range = task.range();
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(range.length);
  const std::span<std::byte> bytes(memory.get(), range.length);
  auto digests = read_base(task, runs, bytes);
  if (!digests) return digests;
  WEFT_CHECK(keep_or_pass(task, make_room(task), bytes));
  CodedCounts counts;
  counts.same_bytes = range.length;
  for (const ChunkRun& run : runs)
    if (const auto pair = transfer.bases->find(run.id)) counts.elements += run.length() / pair->width;
  bases_.note_coded(transfer.bases, counts);
  const MutexLock lock(mutex_);
  ++local_.reads;
  local_.bytes += range.length;
  return digests;
}

// Gives up the base of a task's blobs: their chunks are fetched from the sources.
void Fetcher::leave_same(const Task& task) {
  Transfer& transfer = *task.transfer;
  const MutexLock lock(mutex_);
  --same_running_;
  for (std::size_t unit = task.unit; unit < task.end; ++unit) {
    transfer.set_same(unit, false);
    transfer.put_back(unit);
    (task.traffic == Traffic::ahead ? ahead_ : wanted_).push_back({task.transfer, unit});
  }
  const auto is_of_task = [&](std::size_t unit) {
    const std::size_t blob = transfer.plan.units[unit].blob;
    return blob >= transfer.plan.units[task.unit].blob && blob <= transfer.plan.units[task.end - 1].blob;
  };
  const auto goes = [&](const Task& one) { return one.transfer == task.transfer && is_of_task(one.unit); };
  for (const Task& one : same_)
    if (goes(one)) transfer.set_same(one.unit, false);
  move_tasks(same_, ahead_, goes);
  wake_.notify_one();
}

}  // namespace weft
