#include "fetch/swarm_reads.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace weft {
namespace {

constexpr auto kTick = std::chrono::milliseconds(500);  // between two looks for silent swarms
constexpr std::size_t kTransfersMax = 8;                // of one version, before the next shard begins
constexpr std::uint64_t kAheadAtStart = 64U << 20U;     // of a reader in order, until it has read kFileStart
constexpr std::uint64_t kReadMax = 4U << 20U;           // bytes of one read of an offered unit
constexpr std::size_t kVersionsMax = 16;                // whose shards wait to be begun

ChunkRun run_of(const OfferedUnit& unit, const RunChunk& chunk) {
  return {unit.runs()[chunk.run].id, chunk.chunk, 1};
}

// True for a unit that is copied from the base.
bool is_copied(const Transfer& transfer, std::size_t unit) {
  const UnitState state = transfer.state(unit);
  return transfer.is_same(unit) && (state == UnitState::queued || state == UnitState::running);
}

}  // namespace

SwarmReads::SwarmReads(const Parts& parts) : swarms_(parts.swarms), state_(parts.state), parts_(parts) {
  worker_.start([this] { return round(); });
  swarms_.on_change([this] { worker_.wake(); });
}

void SwarmReads::end() {
  if (std::exchange(ended_, true)) return;
  swarms_.on_change({});
  worker_.end();
  std::vector<Digest> manifests;
  {
    const MutexLock lock(state_.mutex);
    manifests = state_.swarm.manifests();
  }
  for (const Digest& manifest : manifests) swarms_.leave(manifest);
}

Result<Worker::Pause> SwarmReads::round() {
  make_calls();
  take_offers();
  while (const auto shard = next_shard()) begin(*shard);
  const MutexLock lock(state_.mutex);
  for (const Digest& manifest : state_.swarm.silent()) {
    log_debug(LogCategory::fetch, "swarm of manifest {}: left, because it gave nothing", to_hex(manifest));
    leave(manifest);
  }
  drop_past_shards();
  return state_.swarm.is_in_use() ? Worker::Pause(kTick) : Worker::kUntilWoken;
}

void SwarmReads::make_calls() {
  std::vector<SwarmFetch::Call> calls;
  {
    const MutexLock lock(state_.mutex);
    calls = state_.swarm.take_calls();
  }
  for (const SwarmFetch::Call& call : calls) {
    const Status made = make(call);
    if (made.ok()) continue;
    log_debug(LogCategory::fetch, "swarm of manifest {}: left: {}", to_hex(call.manifest), made.error().message);
    const MutexLock lock(state_.mutex);
    leave(call.manifest);
  }
}

Status SwarmReads::make(const SwarmFetch::Call& call) {
  switch (call.kind) {
    case SwarmFetch::Call::Kind::want:
      return swarms_.want(call.manifest, call.runs, call.coded);
    case SwarmFetch::Call::Kind::leave:
      swarms_.leave(call.manifest);
      break;
    case SwarmFetch::Call::Kind::wait_for:
      swarms_.wait_for(call.manifest, call.runs.front());
      break;
    case SwarmFetch::Call::Kind::stop_waiting:
      swarms_.stop_waiting(call.manifest, call.runs.front());
      break;
  }
  return {};
}

void SwarmReads::take_offers() {
  while (auto unit = swarms_.take()) {
    {
      const MutexLock lock(state_.mutex);
      state_.swarm.offer(std::move(unit));
    }
    state_.work.notify_one();
  }
}

// Leaves the swarm of a version. Its missing units come by the ordinary way.
void SwarmReads::leave(const Digest& manifest) {
  std::erase_if(shards_, [&](const Shards& one) { return one.content->row.manifest == manifest; });
  state_.queue.leave_swarm(manifest);
  state_.work.notify_one();
}

void SwarmReads::note_read(const std::shared_ptr<const DecodedVersion>& content, const ColdRange& what) {
  const bool whole =
      what.all && what.range.offset == 0 && what.ahead >= content->manifest.files[what.file].size - what.range.length;
  const bool in_order = !what.all && what.ahead > 0 && what.range.offset <= kFileStart;
  if (what.one_tensor || content->bytes <= kSwarmBytesMin || !(whole || in_order)) return;
  const bool at_start = what.range.offset + what.range.length <= kFileStart;
  const std::uint64_t bytes = at_start ? kAheadAtStart : content->manifest.files[what.file].size;
  const auto others = shards_of(content->manifest, what.file);
  const MutexLock lock(state_.mutex);
  if (state_.swarm.rests(content->row.manifest)) return;
  auto at = std::ranges::find(shards_, content->row.id, [](const Shards& one) { return one.content->row.id; });
  if (at == shards_.end()) {
    if (shards_.size() == kVersionsMax) shards_.erase(shards_.begin());
    at = shards_.insert(shards_.end(), {content, {}, {others.begin(), others.end()}});
  }
  if (whole) at->whole = true;
  if (in_order) at->read = {content, what.file, bytes};
  worker_.wake();
}

void SwarmReads::expect_others(bool expected) {
  const MutexLock lock(state_.mutex);
  expects_others_ = expected;
  worker_.wake();
}

bool SwarmReads::has_partners(const Digest& manifest) const {
  return expects_others_ || swarms_.has_partners(manifest);
}

// Drops shards that are begun, and those of versions of which nobody wants a unit any more: their readers have gone.
void SwarmReads::drop_past_shards() {
  std::erase_if(shards_, [&](Shards& one) WEFT_REQUIRES(state_.mutex) {
    const bool has_joined = state_.swarm.has_joined(one.content->row.manifest);
    const bool had_joined = std::exchange(one.has_joined, one.has_joined || has_joined);
    return (!one.read && one.others.empty()) || (had_joined && !has_joined);
  });
}

// Returns the next shard to begin. While its version has many unfinished transfers, or has not joined its swarm yet,
// the shard waits. A reader in order without partners may read no other shard, so for this reader none begins.
std::optional<SwarmReads::Shard> SwarmReads::next_shard() {
  const MutexLock lock(state_.mutex);
  drop_past_shards();
  if (state_.ending) return {};
  for (Shards& one : shards_) {
    const Digest& manifest = one.content->row.manifest;
    if (one.read && has_partners(manifest)) return std::exchange(one.read, std::nullopt);
    if (!state_.swarm.has_joined(manifest) || state_.swarm.transfers(manifest) >= kTransfersMax) continue;
    if (one.others.empty() || !(one.whole || has_partners(manifest))) continue;
    const std::uint32_t file = one.others.front();
    one.others.pop_front();
    return Shard{one.content, file, one.content->manifest.files[file].size};
  }
  return {};
}

// True if so many bytes, and the units that are to come, fit into the cache without an eviction.
bool SwarmReads::has_room(std::uint64_t bytes) {
  {
    const MutexLock lock(state_.mutex);
    bytes += state_.queue.to_come() * kDigestChunk;
  }
  return parts_.room.has_room(bytes);
}

void SwarmReads::begin(const Shard& shard) {
  const auto& [content, number, bytes] = shard;
  const File& file = content->manifest.files[number];
  Status begun = Error{Errc::no_space, "the cache has no room for another shard"};
  if (has_room(std::min(file.size, bytes))) begun = parts_.planner.begin(*content, number);
  const MutexLock lock(state_.mutex);
  if (!begun.ok()) {
    log_debug(LogCategory::fetch, "swarm of manifest {}: {}@{}: {} is not begun: {}", to_hex(content->row.manifest),
              content->row.model_name, content->row.number, file.path, begun.error().message);
    std::erase_if(shards_, [&](const Shards& one) { return one.content == shard.content; });
    return;
  }
  for (const Extent& extent : file.extents) {
    if (extent.offset >= bytes) break;
    const TransferPlace* home = state_.table.find(extent.id);
    if (home == nullptr) continue;
    const auto& transfer = home->transfer;
    transfer->is_straight = false;
    if (!state_.swarm.has_swarm(*transfer)) continue;
    state_.queue.want_ahead(
        transfer, units_in(transfer->plan, {home->offset, std::min(extent.id.length, bytes - extent.offset)}));
  }
}

// Returns the transfer and the unit of a chunk. No transfer: no reader wants the chunk, or it is local.
std::pair<std::shared_ptr<Transfer>, std::size_t> SwarmReads::unit_of(const ChunkRun& chunk) {
  const TransferPlace* home = state_.table.find(chunk.id);
  if (home == nullptr || !home->transfer->may_swarm || chunk.offset() >= chunk.id.length) return {};
  const auto& transfer = home->transfer;
  return {transfer, units_in(transfer->plan, {home->offset + chunk.offset(), 1}).first};
}

// Begins the next missing units of an offered unit that are adjacent in one pack. `at`: the first chunk to look at.
std::optional<FetchTask> SwarmReads::next_part(const OfferedUnit& unit, std::span<const RunChunk> chunks,
                                               std::size_t& at) {
  FetchTask task;
  const MutexLock lock(state_.mutex);
  for (std::uint64_t bytes = 0; at < chunks.size() && bytes < kReadMax; ++at) {
    const auto [transfer, number] = unit_of(run_of(unit, chunks[at]));
    const bool lacks = transfer && transfer->state(number) != UnitState::here &&
                       transfer->state(number) != UnitState::running && !is_copied(*transfer, number);
    if (task.transfer && (!lacks || transfer != task.transfer || number != task.end)) break;
    if (!lacks) continue;
    if (!task.transfer) {
      task.transfer = transfer;
      task.unit = task.end = number;
    }
    transfer->begin(task.end++);
    bytes += chunks[at].length;
  }
  if (!task.transfer) return {};
  task.traffic = task.transfer->background;
  return task;
}

// True unless a chunk of the unit is still missing in a transfer, and wanted of the swarm.
bool SwarmReads::has_all(const OfferedUnit& unit, std::span<const RunChunk> chunks) {
  const MutexLock lock(state_.mutex);
  return std::ranges::all_of(chunks, [&](const RunChunk& chunk) WEFT_REQUIRES(state_.mutex) {
    const auto [transfer, number] = unit_of(run_of(unit, chunk));
    return !transfer || transfer->state(number) == UnitState::here || is_copied(*transfer, number);
  });
}

// The swarm hears of the unit before the sources do: a unit that came by another way says nothing about its sender.
void SwarmReads::read(std::shared_ptr<OfferedUnit> unit) {
  const auto chunks = chunks_of(unit->runs());
  const Digest manifest = unit->manifest();
  std::vector<ChunkRun> came;
  Status status;
  for (std::size_t at = 0; status.ok();) {
    auto task = next_part(*unit, chunks, at);
    if (!task) break;
    const auto runs = task->runs();
    status = read_part(*task, unit);
    if (status.ok()) came.insert(came.end(), runs.begin(), runs.end());
  }
  if (status.ok() && has_all(*unit, chunks)) unit->arrived();
  unit.reset();
  {
    const MutexLock lock(state_.mutex);
    state_.swarm.ended(manifest, !came.empty());
    if (!status.ok() && status.error().code == Errc::no_space) leave(manifest);
  }
  if (came.empty()) return;
  parts_.sources.arrived(manifest, came);
}

Status SwarmReads::read_part(FetchTask& task, const std::shared_ptr<OfferedUnit>& unit) {
  const LogWork work("transfer", task.transfer->log_id);
  const auto begun = Transfer::Clock::now();
  const auto digests = move(task, unit);
  if (!digests.ok()) {
    log_debug(LogCategory::fetch, "no bytes at {} from a swarm: {}", task.range().offset, digests.error().message);
    put_back(task);
    return digests.error();
  }
  parts_.same.compare(task);
  parts_.outcomes.set(task, digests, begun);
  return {};
}

Result<std::vector<Digest>> SwarmReads::move(FetchTask& task, const std::shared_ptr<OfferedUnit>& unit) {
  WEFT_CHECK(parts_.room.make_room(*task.transfer->pack, task.range().length));
  const auto runs = task.runs();
  FetchSources::Request request{task.transfer->manifest, runs, {}};
  request.aid.traffic = task.traffic;
  request.aid.is_wanted = [this, unit] { return !state_.is_ending() && unit->is_wanted(); };
  request.aid.is_waited_for = [this, &task] { return state_.is_waited_for(task); };
  request.aid.came = [this] { state_.wake_worker(); };
  request.aid.subject = task.transfer->subject;
  parts_.bases.lend(task.transfer->bases, runs, request.aid);
  auto got = parts_.sources.read_offered(request, unit);
  parts_.bases.note_coded(task.transfer->bases, request.aid.coded);
  if (!got.ok()) return std::move(got).error();
  WEFT_CHECK(parts_.outcomes.keep_or_pass(task, {}, got->read.bytes.bytes()));
  parts_.sources.taken(*got);
  return std::move(got->read.digests);
}

// The swarm lacks the unit again. If it was left meanwhile, the units come by the ordinary way.
void SwarmReads::put_back(const FetchTask& task) {
  const MutexLock lock(state_.mutex);
  for (std::size_t unit = task.unit; unit < task.end; ++unit)
    if (!state_.swarm.put_back(task.transfer, unit)) state_.queue.add(task.transfer, unit, Traffic::ahead);
  state_.work.notify_one();
}

}  // namespace weft
