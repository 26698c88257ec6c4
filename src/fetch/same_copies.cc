#include "fetch/same_copies.h"

#include <memory>
#include <utility>

#include "base/sha256.h"
#include "os/sys.h"

namespace weft {

void SameCopies::compare(const FetchTask& task) {
  Transfer& transfer = *task.transfer;
  std::vector<std::size_t> blobs;
  {
    const MutexLock lock(state_.mutex);
    for (std::size_t unit = task.unit; unit < task.end; ++unit) {
      const std::size_t blob = transfer.plan.units[unit].blob;
      if (transfer.comparison(unit).is_due && (blobs.empty() || blobs.back() != blob)) blobs.push_back(blob);
    }
  }
  for (const std::size_t blob : blobs) compare(task.transfer, blob);
}

// Compares a blob with its base, and marks the equal units. Does not wait for a base that is still being fetched:
// chunks come as differences, as far as their base is local.
void SameCopies::compare(const std::shared_ptr<Transfer>& transfer, std::size_t blob) {
  const Extent& extent = transfer->plan.blobs[blob];
  const VerifiedSource::Proof ours = parts_.sources.known_proof(extent.id);
  std::vector<Digest> bases;
  if (const auto pair = transfer->bases->find(extent.id); pair && ours) {
    const ChunkRun whole{pair->base, 0, chunk_count(pair->base.length)};
    if (here_if_any(parts_.local, std::span(&whole, 1)).front().pack)
      if (auto known = parts_.local.digests(pair->base); known.ok()) bases = *std::move(known);
  }
  const auto is_same = [&](std::uint64_t chunk) { return chunk < bases.size() && (*ours)[chunk] == bases[chunk]; };
  const auto [first, end] = units_in(transfer->plan, {extent.offset, extent.id.length});
  const MutexLock lock(state_.mutex);
  for (std::size_t unit = first; unit < end; ++unit) {
    const UnitState state = transfer->state(unit);
    if (state == UnitState::here || state == UnitState::running) continue;
    transfer->set_same(unit, is_same(transfer->plan.units[unit].run.first));
  }
  transfer->compared(blob, ours ? *ours : std::vector<Digest>());
  state_.queue.compared(transfer, {first, end});
  state_.work.notify_one();
}

// Reads the chunks of a task from their bases. Returns the digests of the chunks; nothing if a base is missing or
// damaged.
std::optional<std::vector<Digest>> SameCopies::read_base(const FetchTask& task, std::span<const ChunkRun> runs,
                                                         std::span<std::byte> to) {
  VersionBases& bases = *task.transfer->bases;
  std::vector<std::optional<BasePair>> pairs;
  pairs.reserve(runs.size());
  for (const ChunkRun& run : runs) pairs.push_back(bases.find(run.id));
  const std::vector<RunBase> places = parts_.bases.places_of(pairs, runs);
  if (!parts_.bases.are_allowed()) return {};
  std::vector<Digest> expected;
  {
    const MutexLock lock(state_.mutex);
    for (std::size_t unit = task.unit; unit < task.end; ++unit) expected.push_back(task.transfer->expected(unit));
  }
  for (const RunBase& base : places)
    if (!base.place.pack) return {};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::span<std::byte> part = to.first(runs[i].length());
    const bool is_read = read_exact(places[i].place.pack->fd(), places[i].place.offset, part, "a base").ok();
    if (!is_read || sha256(part) != expected[i]) {
      parts_.bases.note_damage(bases, places[i].id);
      return {};
    }
    to = to.subspan(part.size());
  }
  return expected;
}

Result<std::optional<std::vector<Digest>>> SameCopies::copy(FetchTask& task) {
  Transfer& transfer = *task.transfer;
  const Range range = task.range();
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(range.length);
  const std::span<std::byte> bytes(memory.get(), range.length);
  const auto runs = task.runs();
  auto digests = read_base(task, runs, bytes);
  if (!digests) {
    leave(task);
    return digests;
  }
  WEFT_CHECK(parts_.outcomes.keep_or_pass(task, parts_.room.make_room(*transfer.pack, range.length), bytes));
  CodedCounts counts;
  counts.same_bytes = range.length;
  for (const ChunkRun& run : runs)
    if (const auto pair = transfer.bases->find(run.id)) counts.elements += run.length() / pair->width;
  parts_.bases.note_coded(transfer.bases, counts);
  const MutexLock lock(state_.mutex);
  ++state_.local.reads;
  state_.local.bytes += range.length;
  return digests;
}

// Gives up the base of a task's blobs: their chunks are fetched from the sources.
void SameCopies::leave(const FetchTask& task) {
  Transfer& transfer = *task.transfer;
  const MutexLock lock(state_.mutex);
  for (std::size_t unit = task.unit; unit < task.end; ++unit) {
    transfer.set_same(unit, false);
    transfer.put_back(unit);
    state_.queue.add(task.transfer, unit, task.traffic);
  }
  state_.queue.ended(task);
  state_.queue.leave_same(task);
  state_.work.notify_one();
}

}  // namespace weft
