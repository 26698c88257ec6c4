// Chunks that a blob and its base have alike, at one place of both: their digests say so once a chunk of the blob has
// come with its proof. They are copied on this node, and verified like all others. Nobody is asked for them.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/sha256.h"
#include "fetch/fetcher_impl.h"
#include "os/sys.h"

namespace weft {

// While one thread copies, others ask for what the base lacks.
std::optional<Fetcher::Task> Fetcher::take_same() {
  while (!same_.empty())
    if (!dropped(same_, 0)) return take(same_, 0, Readiness::ready);
  return {};
}

// Of the blobs that this task brought the first chunk of.
void Fetcher::find_same(const Task& task) {
  Transfer& transfer = *task.transfer;
  if (!transfer.bases) return;
  std::vector<std::size_t> blobs;
  {
    const std::lock_guard lock(mutex_);
    if (!policy_.sparse) return;
    for (std::size_t unit = task.unit; unit < task.end; ++unit)
      if (const std::size_t blob = transfer.plan.units[unit].blob; transfer.begin_look(blob)) blobs.push_back(blob);
  }
  for (const std::size_t blob : blobs) find_same(task.transfer, blob);
}

void Fetcher::find_same(const std::shared_ptr<Transfer>& transfer, std::size_t blob) {
  const Extent& extent = transfer->plan.blobs[blob];
  const auto pair = transfer->bases->find(extent.id);
  if (!pair || chunk_count(extent.id.length) == 1 || chunk_count(pair->base.length) == 1) return;
  auto ours = digests(extent.id);
  const auto bases = digests(pair->base);
  if (!ours.ok() || !bases.ok()) return;
  const auto is_same = [&](std::uint64_t chunk) { return chunk < bases->size() && (*ours)[chunk] == (*bases)[chunk]; };
  const auto [first, end] = units_in(transfer->plan, {extent.offset, extent.id.length});
  const std::lock_guard lock(mutex_);
  for (std::size_t unit = first; unit < end; ++unit) {
    const ChunkRun& run = transfer->plan.units[unit].run;
    const UnitState state = transfer->state(unit);
    bool same = state != UnitState::here && state != UnitState::running;
    for (std::uint64_t chunk = run.first; same && chunk < run.first + run.count; ++chunk) same = is_same(chunk);
    if (!same) continue;
    transfer->set_same(unit, true);
    if (state == UnitState::queued) same_.push_back({transfer, unit});
  }
  transfer->prove(blob, *std::move(ours));
}

Status Fetcher::read_base(const Task& task, const std::vector<ChunkRun>& runs, std::span<std::byte> to) {
  std::vector<ChunkRun> lent;
  for (const ChunkRun& run : runs) {
    const auto pair = task.transfer->bases->find(run.id);
    if (!pair) return Error{Errc::absent, "a base is not used any more"};
    lent.push_back({pair->base, run.first, run.count});
  }
  const auto places = here_if_any(*this, lent);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!places[i].pack) return Error{Errc::absent, "a base is not here any more"};
    WEFT_CHECK(read_exact(places[i].pack->fd(), places[i].offset, to.first(runs[i].length()), "a base"));
    to = to.subspan(runs[i].length());
  }
  return {};
}

// If this fails, its units are to be fetched like others.
Result<std::vector<Digest>> Fetcher::copy_same(const Task& task, const std::vector<ChunkRun>& runs) {
  Transfer& transfer = *task.transfer;
  const Range range = task.range();
  WEFT_CHECK(make_room(range.length));
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(range.length);
  const std::span<std::byte> bytes(memory.get(), range.length);
  WEFT_CHECK(read_base(task, runs, bytes));
  std::vector<Digest> expected;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t unit = task.unit; unit < task.end; ++unit)
      std::ranges::copy(transfer.proved(unit), std::back_inserter(expected));
  }
  auto found = digests_of(runs, bytes);
  if (const auto differs = std::ranges::mismatch(found, expected).in1; differs != found.end()) {
    const std::size_t run = chunks_of(runs)[static_cast<std::size_t>(differs - found.begin())].run;
    const auto pair = transfer.bases->find(runs[run].id);
    if (pair && transfer.bases->leave_out(pair->base)) report_damage(pair->base);
    return Error{Errc::corrupt, "a base has other bytes than it should have"};
  }
  WEFT_CHECK(put_in_pack(transfer, range.offset, bytes));
  CodedCounts counts;
  counts.same_bytes = range.length;
  note_coded(transfer.bases, counts);
  const std::lock_guard lock(mutex_);
  transfer.move();
  ++local_.reads;
  local_.bytes += range.length;
  return found;
}

void Fetcher::leave_same(const Task& task) {
  const std::lock_guard lock(mutex_);
  for (std::size_t unit = task.unit; unit < task.end; ++unit) task.transfer->set_same(unit, false);
}

}  // namespace weft
