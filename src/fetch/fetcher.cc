#include "fetch/fetcher.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "os/file_ops.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

constexpr std::uint64_t kFilesForBatch = 3;  // requested in a group, before its batches are read ahead
constexpr std::uint64_t kFilesForNextBatch = 16;
constexpr std::uint64_t kPieceBytesMax = 64U << 20U;  // the longest run of an answer, with bytes behind its range
// Between two marks of use by a waiting reader. It looks as often whether its bytes are still wanted.
constexpr auto kUsed = std::chrono::milliseconds(500);

CacheSpace::Disk disk_of(Store& store) {
  return [&store] { return disk_space(store.directory().root().fd()); };
}

}  // namespace

Fetcher::Fetcher(Store& store, FetchedCache& cache, const std::vector<std::shared_ptr<BlobSource>>& sources,
                 const FetchOptions& options)
    : options_(options),
      sources_(sources, options.patience),
      manifests_(store, cache, sources_, options_),
      state_(options_, sources_, [this] { swarming_->wake(); }),
      bytes_(store, cache, sources_, state_),
      bases_({store, manifests_, sources_, bytes_, [this](const ContentId& blob) { return bytes_.is_coming(blob); },
              options.damaged}),
      planner_(store, cache, sources_, bases_, state_, options_),
      room_(cache, state_, sources_, CacheSpace(options.disk ? options.disk : disk_of(store))),
      outcomes_(state_, room_, options_),
      same_({state_, sources_, bases_, bytes_, room_, outcomes_}) {
  if (options_.swarms != nullptr)
    swarming_ = std::make_unique<SwarmReads>(
        SwarmReads::Parts{*options_.swarms, state_, planner_, sources_, bases_, room_, outcomes_, same_});
  const unsigned workers = std::max(1U, options_.threads) + (swarming_ ? kAcceptedMax : 0);
  for (unsigned i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
  keeping_ = std::thread([this] { keep(); });
}

Fetcher::~Fetcher() {
  {
    const MutexLock lock(state_.mutex);
    state_.ending = true;
  }
  state_.work.notify_all();
  state_.arrived.notify_all();
  state_.keep.notify_all();
  manifests_.end();
  if (swarming_) swarming_->end();
  for (std::thread& worker : workers_) worker.join();
  keeping_.join();
}

// Returns the units of a part that a range needs.
std::pair<std::size_t, std::size_t> Fetcher::units_of(const RangePart& part, Range range) {
  const Range wanted = overlap(range, {part.extent.offset, part.extent.id.length});
  return units_in(part.home.transfer->plan, {part.home.offset + (wanted.offset - part.extent.offset), wanted.length});
}

// Queues read-ahead. In a file: the bytes behind the range. In a group: the batch at the range, from the
// kFilesForBatch-th file on, and the next batch, from the kFilesForNextBatch-th file on.
void Fetcher::want_neighbours(const RangePart& last, const ColdRange& what) {
  const auto& transfer = last.home.transfer;
  if (transfer->file) {
    const std::uint64_t end = what.range.offset + what.range.length;
    const std::uint64_t begin = what.all ? what.range.offset : end;
    state_.queue.want_ahead(transfer, units_in(transfer->plan, {begin, end + what.ahead - begin}));
    return;
  }
  const std::uint64_t files = transfer->note_file(what.file);
  if (files >= kFilesForBatch) state_.queue.want_batch(transfer, batch_of(transfer->plan, last.units.first));
  if (files >= kFilesForNextBatch) state_.queue.want_batch(transfer, next_batch(transfer->plan, last.units.first));
}

// Returns the local bytes of a requested part, as FetchStatus::local counts them. Marks its units as asked for.
std::uint64_t Fetcher::bytes_here(const RangePart& part, Range range) {
  const Range wanted = overlap(range, {part.extent.offset, part.extent.id.length});
  if (part.place.pack) return wanted.length;
  Transfer& transfer = *part.home.transfer;
  const Range in_transfer{part.home.offset + (wanted.offset - part.extent.offset), wanted.length};
  std::uint64_t bytes = 0;
  for (std::size_t i = part.units.first; i < part.units.second; ++i) {
    const FetchUnit& unit = transfer.plan.units[i];
    if (transfer.ask(i) && transfer.state(i) == UnitState::here)
      bytes += overlap(in_transfer, {unit.offset, unit.length}).length;
  }
  return bytes;
}

void Fetcher::count_here(const std::vector<RangePart>& parts, Range range) {
  std::uint64_t bytes = 0;
  for (const RangePart& part : parts) bytes += bytes_here(part, range);
  state_.local.bytes += bytes;
  state_.local.reads += bytes > 0 ? 1 : 0;
}

// Queues the missing units of a request. outcome() takes those that may pass and have passed for another reader.
void Fetcher::queue(std::vector<RangePart>& parts, const ColdRange& what, bool all_kept) {
  for (RangePart& part : parts)
    if (!part.place.pack) part.units = units_of(part, what.range);
  count_here(parts, what.range);
  for (RangePart& part : parts) {
    if (part.place.pack) continue;
    part.home.transfer->use();
    part.home.transfer->is_read = true;
    part.home.transfer->is_straight = what.one_tensor;
    state_.queue.set_class(part.home.transfer, what.background, what.all);
    for (std::size_t unit = part.units.first; unit < part.units.second; ++unit) {
      part.home.transfer->join(unit);
      if (what.all) continue;
      if (all_kept || !state_.passing.find(part.home.transfer->plan.units[unit].run))
        state_.queue.want(part.home.transfer, unit);
    }
  }
  if (!parts.empty() && !parts.back().place.pack) want_neighbours(parts.back(), what);
  if (!what.all) return;
  for (const RangePart& part : parts)  // also parts in other transfers than the last part's
    if (!part.place.pack) state_.queue.want_ahead(part.home.transfer, part.units);
}

// Returns the outcome of the units of `parts`; nothing while units are missing. Marks their transfers as used, so that
// these stay open. A reader takes units that passed. It requests again units that nobody fetches: they passed before it
// looked, or failed because no reader waited and there was no space. It does not wait long for a unit of a swarm, or
// for a held one. `all_kept`: no unit may pass.
std::optional<Status> Fetcher::outcome(std::vector<RangePart>& parts, bool all_kept, SwarmFetch::Reader& reader) {
  if (state_.ending) return Status(Error{Errc::unreachable, "the daemon ends"});
  bool all_here = true;
  for (RangePart& part : parts) {
    if (part.place.pack) continue;
    const auto& transfer = part.home.transfer;
    transfer->use();
    for (std::size_t unit = part.units.first; unit < part.units.second; ++unit) {
      const UnitState state = transfer->state(unit);
      if (state == UnitState::here || part.passed.contains(unit)) continue;
      const auto passing = all_kept ? std::nullopt : state_.passing.find(transfer->plan.units[unit].run);
      if (passing) part.passed[unit] = *passing;
      if (passing) continue;
      const bool lacked_space = state == UnitState::failed && transfer->failure(unit).code == Errc::no_space;
      if (state == UnitState::failed && (all_kept || !lacked_space)) return Status(transfer->failure(unit));
      all_here = false;
      if (state == UnitState::running && state_.swarm.has_joined(transfer->manifest)) reader.waits_for(transfer, unit);
      if (state == UnitState::queued || state == UnitState::running) continue;
      const bool comes_later = state == UnitState::in_swarm || state == UnitState::held;
      if (comes_later && reader.waits_for(transfer, unit)) continue;
      if (comes_later)
        state_.queue.want_now(transfer, unit);
      else if (all_kept)
        state_.queue.want_ahead(transfer, {unit, unit + 1});
      else
        state_.queue.want(transfer, unit);
      state_.work.notify_one();
    }
  }
  return all_here ? std::optional<Status>(Status()) : std::nullopt;
}

// Waits for the units of `parts`, without a deadline of its own: each unit arrives, or fails once its sources have been
// silent for long enough. Returns the runs of the parts.
Result<std::vector<Run>> Fetcher::wait_for(std::vector<RangePart>& parts, const ColdRange& what) {
  const bool all_kept = what.all || what.range.length > kPassMax;
  UniqueLock lock(state_.mutex);
  SwarmFetch::Reader reader(state_.swarm, what.all);
  queue(parts, what, all_kept);
  auto own = state_.queue.take_own([&parts](const Transfer& transfer, std::size_t unit) {
    return std::ranges::any_of(parts, [&](const RangePart& part) {
      return !part.place.pack && part.home.transfer.get() == &transfer && part.units.first <= unit &&
             unit < part.units.second;
    });
  });
  if (!state_.queue.is_idle()) state_.work.notify_one();
  if (own) {
    lock.unlock();
    run(std::move(*own));
    lock.lock();
  }
  for (auto looks = Clock::now();;) {
    if (const auto end = outcome(parts, all_kept, reader)) {
      WEFT_CHECK(*end);
      return pieces_of(parts, what.range);
    }
    if (Clock::now() >= looks) {
      if (!ColdWait::is_wanted()) return Error{Errc::cancelled, "no longer wanted"};
      looks = Clock::now() + kUsed;
    }
    state_.arrived.wait_for(lock, kUsed);
  }
}

// Returns the runs of a part in a transfer. If the pack has the file's layout there, the run consists of whole units,
// and goes on over arrived units that follow. If units passed, each unit is a run.
std::vector<Run> Fetcher::here_of(const RangePart& part, Range range) const {
  const Transfer& transfer = *part.home.transfer;
  if (!part.passed.empty()) {
    std::vector<Run> runs;
    for (std::size_t unit = part.units.first; unit < part.units.second; ++unit) {
      const FetchUnit& of = transfer.plan.units[unit];
      const auto passed = part.passed.find(unit);
      const OpenPlace kept{transfer.reader, of.offset};
      runs.push_back({part.extent.offset + (of.offset - part.home.offset), of.length,
                      passed == part.passed.end() ? kept : passed->second});
    }
    return runs;
  }
  if (part.home.offset != part.extent.offset) {
    const Range wanted = overlap(range, {part.extent.offset, part.extent.id.length});
    return {
        Run{wanted.offset, wanted.length, {transfer.reader, part.home.offset + (wanted.offset - part.extent.offset)}}};
  }
  const auto& units = transfer.plan.units;
  const std::uint64_t begin = std::max(units[part.units.first].offset, part.extent.offset);
  std::size_t unit = part.units.second;
  std::uint64_t end = units[unit - 1].offset + units[unit - 1].length;
  for (; unit < units.size() && units[unit].offset == end && end - begin < kPieceBytesMax; ++unit) {
    if (transfer.state(unit) != UnitState::here) break;
    end += units[unit].length;
  }
  // Another file may have other bytes behind this extent.
  if (!part.same_file) end = std::min(end, part.extent.offset + part.extent.id.length);
  return {Run{begin, end - begin, {transfer.reader, begin}}};
}

std::vector<Run> Fetcher::pieces_of(const std::vector<RangePart>& parts, Range range) const {
  std::vector<Run> pieces;
  for (const RangePart& part : parts) {
    const std::vector<Run> runs = part.place.pack
                                      ? std::vector<Run>{{part.extent.offset, part.extent.id.length, part.place}}
                                      : here_of(part, range);
    for (const Run& piece : runs) {
      const std::uint64_t covered = pieces.empty() ? piece.offset : end_of(pieces.back());
      if (end_of(piece) > covered) append_run(pieces, part_of(piece, std::max(piece.offset, covered), end_of(piece)));
    }
  }
  return pieces;
}

Result<std::vector<Run>> Fetcher::bring(const ColdRange& what) {
  WEFT_TRY(const auto content, manifests_.content(what.version));
  const std::string where = fmt::format("{}@{}", content->row.model_name, content->row.number);
  if (what.file >= content->manifest.files.size())
    return Error{Errc::invalid, fmt::format("{}: has no file {}", where, what.file)};
  const File& file = content->manifest.files[what.file];
  const Range range = overlap(what.range, {0, file.size});
  if (range.length != what.range.length)
    return Error{Errc::invalid,
                 fmt::format("{}: {}: has no {} bytes at {}", where, file.path, what.range.length, what.range.offset)};
  if (swarming_) swarming_->note_read(content, what);
  auto parts = planner_.parts_of(*content, what.file, range);
  auto pieces = parts.ok() ? wait_for(*parts, what) : Result<std::vector<Run>>(parts.error());
  if (pieces.ok()) return pieces;
  return Error{pieces.error().code, fmt::format("{}: {}: {}", where, file.path, pieces.error().message)};
}

void Fetcher::set_policy(const FetchPolicy& policy) {
  bases_.allow(policy.sparse);
  room_.set_bound(policy.cache_max);
  if (swarming_) swarming_->expect_others(policy.expect_others);
  const MutexLock lock(state_.mutex);
  cold_ = policy.cold;
  state_.keep.notify_one();
}

// ColdAdvice::keeps counts the space of evictable packs too.
ColdAdvice Fetcher::advice() {
  const std::uint64_t keeps = room_.bound();
  const MutexLock lock(state_.mutex);
  return {cold_, state_.rate.bytes_per_s(), keeps};
}

FetchStatus Fetcher::status() const {
  FetchStatus status;
  {
    const MutexLock lock(state_.mutex);
    status.local = state_.local;
    status.transfers = state_.table.size();
    status.waiting = state_.queue.units();
  }
  status.sources = sources_.counts();
  status.problem = sources_.problem();
  status.manifests = manifests_.fetched();
  FetchBases::Counts coded = bases_.counts();
  status.coded = coded.all;
  status.last_coded = std::move(coded.last);
  return status;
}

}  // namespace weft
