#include "fetch/transfer.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/core.h>

#include "base/sha256.h"
#include "blobs/fd_pack.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr auto kPauseMin = std::chrono::milliseconds(10);
constexpr auto kPauseMax = std::chrono::milliseconds(320);

std::atomic<std::uint64_t> last_log_id = 0;

// Returns a reader of the pack with its own read-only descriptor, which stays open for readers after the FetchPack is
// gone.
Result<std::shared_ptr<const PackReader>> reader_of(const FetchPack& pack) {
  const std::string path = fmt::format("/proc/self/fd/{}", pack.fd());
  WEFT_TRY(Fd fd, open_file(path, O_RDONLY));
  return std::shared_ptr<const PackReader>(std::make_shared<FdPack>(std::move(fd), pack.size(), pack.id()));
}

}  // namespace

Result<std::shared_ptr<Transfer>> Transfer::make(VersionId version, std::optional<std::uint32_t> file,
                                                 const Digest& manifest, FetchPlan plan,
                                                 std::unique_ptr<FetchPack> pack, VersionHold hold) {
  WEFT_TRY(auto reader, reader_of(*pack));
  return std::shared_ptr<Transfer>(
      new Transfer(version, file, manifest, std::move(plan), std::move(pack), std::move(reader), std::move(hold)));
}

Transfer::Transfer(VersionId of, std::optional<std::uint32_t> of_file, const Digest& named, FetchPlan planned,
                   std::unique_ptr<FetchPack> into, std::shared_ptr<const PackReader> readers, VersionHold hold)
    : log_id(++last_log_id),
      version(of),
      file(of_file),
      manifest(named),
      plan(std::move(planned)),
      pack(std::move(into)),
      reader(std::move(readers)),
      hold_(std::move(hold)),
      units_(plan.units.size()),
      blobs_(plan.blobs.size()),
      missing_(plan.units.size()) {
  for (std::size_t i = 0; i < blobs_.size(); ++i) {
    blobs_[i].missing = chunk_count(plan.blobs[i].id.length);
    blobs_[i].chunks.resize(blobs_[i].missing);
  }
}

// Counts the units that run or are held, and for each blob those that are requested or queued.
void Transfer::set(std::size_t unit, UnitState state) {
  const FetchUnit& of = plan.units[unit];
  const UnitState before = std::exchange(units_[unit].state, state);
  if (before == UnitState::running) {
    --busy_;
    busy_bytes_ -= of.length;
  }
  if (state == UnitState::running) {
    ++busy_;
    busy_bytes_ += of.length;
  }
  BlobComparison& comparison = blobs_[of.blob].comparison;
  const auto is_requested = [](UnitState one) { return one == UnitState::running || one == UnitState::in_swarm; };
  if (is_requested(before)) --comparison.requested;
  if (is_requested(state)) ++comparison.requested;
  if (before == UnitState::queued) --comparison.queued;
  if (state == UnitState::queued) ++comparison.queued;
  if (before == UnitState::held) --held_;
  if (state == UnitState::held) ++held_;
}

void Transfer::begin(std::size_t unit) {
  if (busy_ == 0) begun_ = unit;
  set(unit, UnitState::running);
}

void Transfer::fail(std::size_t unit, Error error) {
  set(unit, UnitState::failed);
  units_[unit] = {UnitState::failed, std::move(error)};  // a new request asks the sources, not the base
}

void Transfer::pass(std::size_t unit) {
  set(unit, UnitState::passed);
  units_[unit].same = false;  // a new request asks the sources, not the base
  moved_ = arrived_ = Clock::now();
}

void Transfer::put_back(std::size_t unit, bool late) {
  queue(unit);
  units_[unit].late = units_[unit].late || late;
}

void Transfer::join(std::size_t unit) {
  const UnitState state = units_[unit].state;
  if (state == UnitState::queued || state == UnitState::running) units_[unit].joined = Clock::now();
}

void Transfer::ask_later() {
  const auto now = Clock::now();
  if (asked_from_ > now) return;  // another unit has delayed it already
  pause_ = std::clamp<Clock::duration>(2 * pause_, kPauseMin, kPauseMax);
  asked_from_ = now + pause_;
}

void Transfer::part(std::size_t unit) {
  set(unit, UnitState::idle);
  units_[unit].alone = true;
}

void Transfer::arrive(std::size_t unit, const Digest& digest) {
  set(unit, UnitState::here);
  moved_ = arrived_ = Clock::now();
  --missing_;
  const auto& [offset, length, number, run] = plan.units[unit];
  Blob& blob = blobs_[number];
  blob.chunks[run.first] = digest;
  if (--blob.missing > 0) return;
  const Extent& extent = plan.blobs[number];
  whole_.push_back({extent.id, extent.offset, std::move(blob.chunks)});
  whole_bytes_ += extent.id.length;
}

void Transfer::expect_comparisons() {
  for (std::size_t blob = 0; bases && blob < plan.blobs.size(); ++blob) {
    const ContentId& id = plan.blobs[blob].id;
    if (chunk_count(id.length) > 1 && bases->find(id)) blobs_[blob].comparison.is_due = true;
  }
}

void Transfer::compared(std::size_t blob, std::vector<Digest> expected) {
  blobs_[blob].comparison.is_due = false;
  if (!expected.empty()) blobs_[blob].chunks = std::move(expected);
}

const Digest& Transfer::expected(std::size_t unit) const {
  const FetchUnit& of = plan.units[unit];
  return blobs_[of.blob].chunks[of.run.first];
}

std::vector<FetchedBlob> Transfer::take_whole() {
  whole_bytes_ = 0;
  return std::exchange(whole_, {});
}

}  // namespace weft
