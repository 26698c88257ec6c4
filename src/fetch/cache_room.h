// Keeps fetched bytes within the cache's bound, and a part of the disk free. Space is made before bytes arrive. Open
// and pinned packs stay, so a reader may find no space. Its bytes then pass without being kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>

#include "base/mutex.h"
#include "base/time_source.h"
#include "fetch/cache_space.h"
#include "fetch/fetch_sources.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// The packs that transfers fill, as a CacheRoom sees them. Any thread. FetchState implements it.
class FilledPacks {
 public:
  using Duration = std::chrono::steady_clock::duration;

  virtual ~FilledPacks() = default;
  virtual std::uint64_t unlisted_bytes(const std::set<PackId>& listed) = 0;  // on the disk, of packs not in `listed`
  virtual std::uint64_t coming_bytes() = 0;  // of running units, which may not have disk blocks yet
  // Closes packs that no reader has used for this time: only closed packs can be evicted.
  virtual void drop_unused(Duration unused) = 0;
  // Asks for complete packs to be indexed, because only indexed packs can be evicted. False: the daemon ends.
  virtual bool hurry_complete() = 0;
  virtual void wait_for_change(Duration time_max) = 0;  // returns after this time at the latest
};

// Any thread. No other mutex is taken, and no store is called, under `mutex_`. It comes after that of FetchState.
class CacheRoom {
 public:
  // All references outlive this.
  CacheRoom(FetchedCache& cache, FilledPacks& packs, const FetchSources& sources, CacheSpace space,
            const TimeSource& time = steady_time())
      : cache_(cache), packs_(packs), sources_(sources), space_(std::move(space)), time_(time) {}

  // Reserves space for bytes of a pack whose units run. Waits up to two seconds, because packs that were just closed
  // can soon be evicted. Errc::no_space, also if the pack keeps nothing.
  Status make_room(const FetchPack& pack, std::uint64_t bytes) WEFT_EXCLUDES(making_room_);
  // True if so many bytes fit without an eviction, in addition to those that come.
  bool has_room(std::uint64_t bytes) WEFT_EXCLUDES(mutex_);
  // True if the reserved space leaves some for lists of blocks. Near the bound, allocate nothing ahead: blocks that are
  // allocated run by run need more extents.
  bool is_ample() const WEFT_EXCLUDES(mutex_);

  // Evicts packs of the cache, as FetchedCache::evict(), and tells the sources.
  Result<EvictReport> evict(const EvictOptions& options);
  void set_bound(std::uint64_t cache_max) WEFT_EXCLUDES(mutex_);  // bytes on the disk
  // True if the cache may exceed its bound. Call keep_bound() then.
  bool is_over() const WEFT_EXCLUDES(mutex_);
  // Evicts down to a changed bound. Open packs stay: repeat it while is_over().
  void keep_bound() WEFT_EXCLUDES(mutex_);

  // Returns the disk space of fetched packs in bytes, indexed or not; at most one second old.
  std::uint64_t used_bytes() WEFT_EXCLUDES(measuring_use_);
  // Returns the bound of the cache now, in bytes: `cache_max`, or less if the disk has less free space.
  std::uint64_t bound() WEFT_EXCLUDES(measuring_use_);

 private:
  using Clock = std::chrono::steady_clock;
  struct Use {
    std::uint64_t listed = 0;    // disk bytes of packs in the index
    std::uint64_t unlisted = 0;  // disk bytes of packs that are not in the index yet
    std::uint64_t total() const { return listed + unlisted; }
  };
  Result<Use> use() WEFT_EXCLUDES(mutex_);
  Result<std::uint64_t> evict_for(std::uint64_t bytes) WEFT_EXCLUDES(mutex_);
  std::optional<Status> reserve(std::uint64_t bytes, std::uint64_t coming) WEFT_EXCLUDES(mutex_);
  bool fits(std::uint64_t used, std::uint64_t coming) WEFT_EXCLUDES(mutex_);
  bool gives_up(bool ends) WEFT_EXCLUDES(mutex_);

  FetchedCache& cache_;
  FilledPacks& packs_;
  const FetchSources& sources_;
  const CacheSpace space_;
  const TimeSource& time_;
  Mutex making_room_ WEFT_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  std::uint64_t cache_max_ WEFT_GUARDED_BY(mutex_) = UINT64_MAX;
  std::uint64_t room_ WEFT_GUARDED_BY(mutex_) = 0;          // bytes that fit into the cache without eviction
  bool over_ WEFT_GUARDED_BY(mutex_) = false;               // the cache may exceed its bound
  Clock::time_point full_until_ WEFT_GUARDED_BY(mutex_){};  // the end of the last wait for space (make_room)
  VainEviction in_vain_ WEFT_GUARDED_BY(mutex_);
  Mutex measuring_use_ WEFT_ACQUIRED_BEFORE(mutex_);
  std::uint64_t used_bytes_ WEFT_GUARDED_BY(measuring_use_) = 0;
  std::optional<Clock::time_point> use_of_ WEFT_GUARDED_BY(measuring_use_);  // when used_bytes_ was measured
};

}  // namespace weft
