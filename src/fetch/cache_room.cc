#include "fetch/cache_room.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

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
constexpr std::uint64_t kRoomForLists = 64U << 20U;  // space for lists of blocks

Error no_room() {
  return {Errc::no_space, "cache_max and the free space of the disk leave no room for fetched bytes"};
}

}  // namespace

Result<CacheRoom::Use> CacheRoom::use() {
  WEFT_TRY(const auto packs, cache_.cached_packs());
  Use use;
  std::set<PackId> listed;
  for (const CachedPack& pack : packs) {
    use.listed += pack.disk_bytes;
    listed.insert(pack.id);
  }
  use.unlisted = packs_.unlisted_bytes(listed);
  return use;
}

// The value is kept for kUseRemembered, because the survey of many packs takes a while. If the survey fails, returns
// the last value.
std::uint64_t CacheRoom::used_bytes() {
  const MutexLock one_measures(measuring_use_);
  const auto now = time_.now();
  if (use_of_ && now < *use_of_ + kUseRemembered) return used_bytes_;
  const auto use = this->use();
  if (use.ok()) used_bytes_ = use->total();
  use_of_ = now;
  return used_bytes_;
}

std::uint64_t CacheRoom::bound() {
  const std::uint64_t used = used_bytes();
  const MutexLock lock(mutex_);
  return space_.bound(cache_max_, used);
}

bool CacheRoom::has_room(std::uint64_t bytes) {
  std::uint64_t cache_max = 0;
  {
    const MutexLock lock(mutex_);
    cache_max = cache_max_;
  }
  bytes += packs_.coming_bytes();
  const auto use = this->use();
  return use.ok() && use->total() + bytes <= space_.bound(cache_max, use->total());
}

bool CacheRoom::is_ample() const {
  const MutexLock lock(mutex_);
  return room_ >= kRoomForLists;
}

// Evicts packs until `bytes` more fit into the cache. Returns the bytes that the cache then has. Drops unused
// transfers, because they keep their packs open. A reader that returns begins a new one.
Result<std::uint64_t> CacheRoom::evict_for(std::uint64_t bytes) {
  std::uint64_t cache_max = 0;
  {
    const MutexLock lock(mutex_);
    cache_max = cache_max_;
  }
  packs_.drop_unused(kIdle);
  WEFT_TRY(const Use use, this->use());
  cache_max = space_.bound(cache_max, use.total());
  if (use.total() + bytes <= cache_max) return use.total();
  const std::uint64_t available = space_.available();
  {
    const MutexLock lock(mutex_);
    if (space_.left() < bytes && in_vain_.holds(available, time_.now())) return use.total();
  }
  const std::uint64_t spare = std::min(cache_max / kSpareParts, kSpareMax);
  const std::uint64_t others = bytes + spare + use.unlisted;
  EvictOptions bound;
  bound.disk_bytes_max = cache_max - std::min(cache_max, others);
  WEFT_TRY(const EvictReport report, evict(bound));
  if (report.packs > 0 && space_.available() <= available) {
    const MutexLock lock(mutex_);
    in_vain_.note(available, time_.now());
  }
  return report.kept_bytes + use.unlisted;
}

Result<EvictReport> CacheRoom::evict(const EvictOptions& options) {
  WEFT_TRY(const EvictReport report, cache_.evict(options));
  if (report.packs > 0 && !options.dry_run) sources_.evicted();
  return report;
}

// Returns the outcome that is known without a survey of the cache. After a failure, calls try without a wait, until
// none has failed for kFullRemembered, and each kFullUntried one of them tries.
std::optional<Status> CacheRoom::reserve(std::uint64_t bytes, std::uint64_t coming) {
  const MutexLock lock(mutex_);
  if (room_ >= bytes && space_.left() >= coming) {
    room_ -= bytes;
    return Status();
  }
  const auto now = time_.now();
  if (now >= full_until_ && now < full_until_ + kFullUntried) return no_room();
  return {};
}

// Sets the space that is left of a cache with so many bytes. True if the coming bytes fit.
bool CacheRoom::fits(std::uint64_t used, std::uint64_t coming) {
  const MutexLock lock(mutex_);
  const std::uint64_t bound = space_.bound(cache_max_, used);
  room_ = bound - std::min(bound, used + coming);
  return used + coming <= bound;
}

// True if a wait for space is over.
bool CacheRoom::gives_up(bool ends) {
  const MutexLock lock(mutex_);
  const auto now = time_.now();
  if (now >= full_until_ + kFullRemembered) full_until_ = now + kRoomPatience;
  if (!ends && now < full_until_) return false;
  full_until_ = now;
  return true;
}

Status CacheRoom::make_room(const FetchPack& pack, std::uint64_t bytes) {
  if (pack.id() == kPassingPack) return no_room();
  const MutexLock one_at_a_time(making_room_);
  for (;;) {
    const std::uint64_t coming = packs_.coming_bytes();
    if (auto known = reserve(bytes, coming)) return *std::move(known);
    WEFT_TRY(const std::uint64_t used, evict_for(coming));
    if (fits(used, coming)) return {};
    if (gives_up(!packs_.hurry_complete())) return no_room();
    packs_.wait_for_change(kPoll);
  }
}

void CacheRoom::set_bound(std::uint64_t cache_max) {
  const MutexLock lock(mutex_);
  cache_max_ = cache_max;
  room_ = 0;
  full_until_ = {};
  over_ = cache_max != UINT64_MAX;
}

bool CacheRoom::is_over() const {
  const MutexLock lock(mutex_);
  return over_;
}

void CacheRoom::keep_bound() {
  const auto used = evict_for(0);
  if (!used.ok()) log_warning("the cache keeps more than its bound: {}", used.error().message);
  const MutexLock lock(mutex_);
  over_ = used.ok() && *used > cache_max_;
}

}  // namespace weft
