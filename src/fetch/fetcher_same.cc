// Chunks that are equal in a blob and its base, at the same offset. Their digests are compared once the first chunk of
// the blob has arrived with its proof. Equal chunks are copied locally, without a source, and verified like all others.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/sha256.h"
#include "fetch/fetcher.h"
#include "os/sys.h"

namespace weft {
// Compares the blobs whose first chunk this task has fetched.
void Fetcher::compare(const FetchTask& task) {
  Transfer& transfer = *task.transfer;
  std::vector<std::size_t> blobs;
  {
    const MutexLock lock(state_.mutex);
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
    if (here_if_any(bytes_, std::span(&whole, 1)).front().pack)
      if (auto known = bytes_.digests(pair->base); known.ok()) bases = *std::move(known);
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
  state_.queue.found_same(transfer);
}

// Reads the chunks of a task from their bases. Returns the digests of the chunks; nothing if a base is missing or
// damaged.
std::optional<std::vector<Digest>> Fetcher::read_base(const FetchTask& task, const std::vector<ChunkRun>& runs,
                                                      std::span<std::byte> to) {
  VersionBases& bases = *task.transfer->bases;
  std::vector<std::optional<BasePair>> pairs;
  pairs.reserve(runs.size());
  for (const ChunkRun& run : runs) pairs.push_back(bases.find(run.id));
  const std::vector<RunBase> places = bases_.places_of(pairs, runs);
  if (!bases_.are_allowed()) return {};
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
      bases_.note_damage(bases, places[i].id);
      return {};
    }
    to = to.subspan(part.size());
  }
  return expected;
}

// Copies the units of a task from their bases to the pack. Returns the result of read_base().
Result<std::optional<std::vector<Digest>>> Fetcher::copy_same(FetchTask& task, const std::vector<ChunkRun>& runs) {
  Transfer& transfer = *task.transfer;
  const Range range = task.range();
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(range.length);
  const std::span<std::byte> bytes(memory.get(), range.length);
  auto digests = read_base(task, runs, bytes);
  if (!digests) return digests;
  WEFT_CHECK(outcomes_.keep_or_pass(task, room_.make_room(*transfer.pack, range.length), bytes));
  CodedCounts counts;
  counts.same_bytes = range.length;
  for (const ChunkRun& run : runs)
    if (const auto pair = transfer.bases->find(run.id)) counts.elements += run.length() / pair->width;
  bases_.note_coded(transfer.bases, counts);
  const MutexLock lock(state_.mutex);
  ++state_.local.reads;
  state_.local.bytes += range.length;
  return digests;
}

// Gives up the base of a task's blobs: their chunks are fetched from the sources.
void Fetcher::leave_same(const FetchTask& task) {
  Transfer& transfer = *task.transfer;
  const MutexLock lock(state_.mutex);
  state_.queue.ended(task);
  for (std::size_t unit = task.unit; unit < task.end; ++unit) {
    transfer.set_same(unit, false);
    transfer.put_back(unit);
    state_.queue.add(task.transfer, unit, task.traffic);
  }
  state_.queue.leave_same(task);
  state_.work.notify_one();
}

}  // namespace weft
