// Keeps fetched bytes within the cache's bound, and a part of the disk free. Space is made before bytes arrive. Open
// and pinned packs stay, so a reader may find no space. Its bytes then pass without being kept.
#include <algorithm>
#include <set>

#include "base/log.h"
#include "fetch/fetcher.h"

namespace weft {
namespace {

// Eviction frees this part of the bound in addition, because the search for packs to evict costs as much for few bytes.
constexpr std::uint64_t kSpareParts = 16;
constexpr std::uint64_t kSpareMax = 256U << 20U;
constexpr auto kIdle = std::chrono::seconds(1);
constexpr auto kRoomPatience = std::chrono::seconds(2);
constexpr auto kFullRemembered = std::chrono::seconds(2);
constexpr auto kFullUntried = std::chrono::milliseconds(250);  // a survey of many packs takes a while
constexpr auto kUseRemembered = std::chrono::seconds(1);
constexpr auto kPoll = std::chrono::milliseconds(50);

}  // namespace

Result<Fetcher::CacheUse> Fetcher::cache_use() {
  WEFT_TRY(const auto packs, cache_.cached_packs());
  CacheUse use;
  std::set<PackId> listed;
  for (const CachedPack& pack : packs) {
    use.listed += pack.disk_bytes;
    listed.insert(pack.id);
  }
  const MutexLock lock(state_.mutex);
  use.unlisted = state_.table.unlisted_bytes(listed);
  return use;
}

// The value is kept for kUseRemembered, because the survey of many packs takes a while. If the survey fails, returns
// the last value.
std::uint64_t Fetcher::cache_bytes() {
  const MutexLock one_measures(measuring_use_);
  const auto now = Clock::now();
  if (use_of_ && now < *use_of_ + kUseRemembered) return cache_bytes_;
  const auto use = cache_use();
  if (use.ok()) cache_bytes_ = use->total();
  use_of_ = now;
  return cache_bytes_;
}

std::uint64_t Fetcher::coming_bytes() {
  const MutexLock lock(state_.mutex);
  return state_.table.coming_bytes();
}

void Fetcher::let_go() {
  UniqueLock lock(state_.mutex);
  while (!state_.ending && state_.table.close_idle()) {
    state_.keep.notify_one();
    state_.arrived.wait_for(lock, kPoll);
  }
  state_.table.drop_idle();
}

// Evicts packs until `bytes` more fit into the cache. Returns the bytes that the cache then has. Drops idle transfers,
// because they keep their packs open. A reader that returns begins a new one.
Result<std::uint64_t> Fetcher::evict_for(std::uint64_t bytes) {
  std::uint64_t cache_max = 0;
  {
    const MutexLock lock(state_.mutex);
    cache_max = policy_.cache_max;
    state_.table.drop_unused(kIdle);
  }
  WEFT_TRY(const CacheUse use, cache_use());
  cache_max = space_.bound(cache_max, use.total());
  if (use.total() + bytes <= cache_max) return use.total();
  const std::uint64_t available = space_.available();
  {
    const MutexLock lock(state_.mutex);
    if (space_.left() < bytes && in_vain_.holds(available)) return use.total();
  }
  const std::uint64_t spare = std::min(cache_max / kSpareParts, kSpareMax);
  const std::uint64_t others = bytes + spare + use.unlisted;
  EvictOptions bound;
  bound.disk_bytes_max = cache_max - std::min(cache_max, others);
  WEFT_TRY(const EvictReport report, evict(bound));
  if (report.packs > 0 && space_.available() <= available) {
    const MutexLock lock(state_.mutex);
    in_vain_.note(available);
  }
  return report.kept_bytes + use.unlisted;
}

Result<EvictReport> Fetcher::evict(const EvictOptions& options) {
  WEFT_TRY(const EvictReport report, cache_.evict(options));
  if (report.packs > 0 && !options.dry_run) sources_.evicted();
  return report;
}

// Reserves space for the bytes of a task. Waits up to kRoomPatience, because packs that were just closed can soon be
// evicted. After a failure, later calls try without a wait, until none has failed for kFullRemembered, and each
// kFullUntried one of them tries.
Status Fetcher::make_room(const FetchTask& task) {
  const Error no_room{Errc::no_space, "cache_max and the free space of the disk leave no room for fetched bytes"};
  if (task.transfer->pack->id() == kPassingPack) return no_room;
  const std::uint64_t bytes = task.range().length;
  const MutexLock one_at_a_time(making_room_);
  for (;;) {
    const std::uint64_t coming = coming_bytes();
    {
      const MutexLock lock(state_.mutex);
      if (room_ >= bytes && space_.left() >= coming) {
        room_ -= bytes;
        return {};
      }
      const auto now = Clock::now();
      if (now >= full_until_ && now < full_until_ + kFullUntried) return no_room;
    }
    WEFT_TRY(const std::uint64_t used, evict_for(coming));
    UniqueLock lock(state_.mutex);
    const std::uint64_t bound = space_.bound(policy_.cache_max, used);
    room_ = bound - std::min(bound, used + coming);
    if (used + coming <= bound) return {};
    state_.table.hurry_complete();
    state_.keep.notify_one();
    const auto now = Clock::now();
    if (now >= full_until_ + kFullRemembered) full_until_ = now + kRoomPatience;
    if (state_.ending || now >= full_until_) {
      full_until_ = now;
      return no_room;
    }
    state_.arrived.wait_for(lock, kPoll);
  }
}

void Fetcher::set_policy(const FetchPolicy& policy) {
  bases_.allow(policy.sparse);
  const MutexLock lock(state_.mutex);
  policy_ = policy;
  room_ = 0;
  full_until_ = {};
  over_ = policy.cache_max != UINT64_MAX;
  state_.keep.notify_one();
}

// Evicts down to a changed bound. The keeper thread repeats it until the packs in excess are closed.
void Fetcher::stay_within_cache() {
  const auto used = evict_for(0);
  if (!used.ok()) log_warning("the cache keeps more than its bound: {}", used.error().message);
  const MutexLock lock(state_.mutex);
  over_ = used.ok() && *used > policy_.cache_max;
}

// ColdAdvice::keeps counts the space of evictable packs too.
ColdAdvice Fetcher::advice() {
  const std::uint64_t used = cache_bytes();
  const MutexLock lock(state_.mutex);
  return {policy_.cold, rate_.bytes_per_s(), space_.bound(policy_.cache_max, used)};
}

}  // namespace weft
