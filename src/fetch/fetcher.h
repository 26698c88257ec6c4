// Fetches bytes to this node, in the daemon. Any number of readers share one transfer of a chunk. The
// fetcher takes the chunk from the cheapest source, verifies it, and stores it in a cached pack.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "blobs/local_bytes.h"
#include "diskformat/toc.h"
#include "fetch/cache_space.h"
#include "fetch/fetch_bases.h"
#include "fetch/fetch_options.h"
#include "fetch/fetch_sources.h"
#include "fetch/manifest_fetch.h"
#include "fetch/passing_bytes.h"
#include "fetch/rate_meter.h"
#include "fetch/swarm_fetch.h"
#include "fetch/transfer.h"
#include "weft/bytes/cold.h"
#include "weft/bytes/source.h"
#include "weft/bytes/swarm.h"
#include "weft/deadline.h"
#include "weft/model/manifest.h"
#include "weft/store/cluster_store.h"

namespace weft {

struct FetchStatus {
  // Requested bytes that were local, and chunks copied from a base. Bytes outside of the requested range do not count.
  // The first request for prefetched bytes does not count either: they count under their source.
  SourceCount local{"local"};
  std::vector<SourceCount> sources;
  std::uint64_t transfers = 0;             // packs being filled
  std::uint64_t waiting = 0;               // queued units
  std::uint64_t manifests = 0;             // fetched
  std::string problem;                     // the last error, "" for none
  CodedCounts coded;                       // of all versions
  std::optional<CodedVersion> last_coded;  // the last version that had a base
};

class Fetcher final : public ColdReads, public LocalBytes {
 public:
  // `sources`: the cheapest first. A source that proves much faster than cheaper sources is asked before these. `store`
  // and `cache` outlive this.
  Fetcher(Store& store, FetchedCache& cache, const std::vector<std::shared_ptr<BlobSource>>& sources,
          const FetchOptions& options);
  ~Fetcher() override;  // takes no longer than `patience`
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  Status resolve(VersionId version) override { return manifests_.resolve(version); }
  Result<std::vector<Run>> bring(const ColdRange& what) override;
  ColdAdvice advice() override;
  void set_policy(const FetchPolicy& policy);
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override;
  Result<std::vector<Digest>> digests(const ContentId& id) override;
  // Puts the fetched bytes of a version into the store's index, durably.
  Status wait_indexed(VersionId version);
  // Evicts packs of the cache, as FetchedCache::evict(), and tells the sources.
  Result<EvictReport> evict(const EvictOptions& options);
  // Indexes everything that has arrived and closes idle transfers, so that eviction can take their packs.
  void let_go();
  FetchStatus status() const;
  // Returns the disk space of fetched packs in bytes, indexed or not; at most one second old.
  std::uint64_t cache_bytes();

 private:
  using Clock = Transfer::Clock;
  class Swarm;
  struct Task {
    std::shared_ptr<Transfer> transfer;
    std::size_t unit = 0;
    std::size_t end = 0;                    // once running: units [unit, end) move together; adjacent in the pack
    bool absent = false;                    // once running: no known source has its bytes, or these are silent
    Traffic traffic = Traffic::foreground;  // once running
    bool same = false;                      // once running: its units equal the base
    bool young = false;                     // once running: sources may soon have the bytes that they lack
    std::shared_ptr<const PackReader> passed = {};  // once moved: the bytes, if the cache has no space for them
    std::shared_ptr<OfferedUnit> offered = {};      // to be read, instead of units of one transfer
    Range range() const;
    std::vector<ChunkRun> runs() const;  // one for each unit
  };
  struct Home {
    std::shared_ptr<Transfer> transfer;
    std::uint64_t offset = 0;  // of the blob, in the transfer's pack
    bool same_file = false;    // the pack has the layout of the requested file
  };
  // An extent of a requested range: local, or in a transfer.
  struct Part {
    Extent extent;
    OpenPlace place;
    Home home;
    std::pair<std::size_t, std::size_t> units;
    std::map<std::size_t, OpenPlace> passed = {};  // units that came and were not kept
  };

  using Queue = std::deque<Task>;

  Result<std::vector<Part>> parts_of(const DecodedVersion& content, std::uint32_t file, Range range)
      WEFT_EXCLUDES(mutex_);
  Status find_homes(const DecodedVersion& content, std::uint32_t file, std::vector<Part>& parts)
      WEFT_EXCLUDES(planning_);
  void expect(const DecodedVersion& content, const std::vector<Extent>& absent);
  Status begin_transfer(const DecodedVersion& content, std::uint32_t file) WEFT_REQUIRES(planning_);
  Status begin_file(const DecodedVersion& content, std::uint32_t file) WEFT_REQUIRES(planning_);
  Result<bool> begin_group(const DecodedVersion& content, FileGroup group) WEFT_REQUIRES(planning_);
  Status add_transfer(const DecodedVersion& content, std::optional<std::uint32_t> file, FetchPlan plan,
                      std::unique_ptr<FetchPack> pack) WEFT_REQUIRES(planning_);
  Result<std::unique_ptr<FetchPack>> pack_for(const File& file, std::span<const OpenPlace> places,
                                              std::span<const Extent> absent) WEFT_EXCLUDES(mutex_);
  bool set_home(Part& part, VersionId version, std::uint32_t file) const WEFT_REQUIRES(mutex_);
  static std::pair<std::size_t, std::size_t> units_of(const Part& part, Range range);
  void want(const std::shared_ptr<Transfer>& transfer, std::size_t unit, bool waited = false) WEFT_REQUIRES(mutex_);
  using Units = std::pair<std::size_t, std::size_t>;  // [first, second)
  void want_ahead(const std::shared_ptr<Transfer>& transfer, Units units) WEFT_REQUIRES(mutex_);
  void want_batch(const std::shared_ptr<Transfer>& transfer, Units units) WEFT_REQUIRES(mutex_);
  void want_neighbours(const Part& last, const ColdRange& what) WEFT_REQUIRES(mutex_);
  std::optional<Status> outcome(std::vector<Part>& parts, bool all_kept, SwarmFetch::Reader& reader)
      WEFT_REQUIRES(mutex_);
  void queue(std::vector<Part>& parts, const ColdRange& what, bool all_kept) WEFT_REQUIRES(mutex_);
  static std::uint64_t bytes_here(const Part& part, Range range);
  void count_here(const std::vector<Part>& parts, Range range) WEFT_REQUIRES(mutex_);
  Result<std::vector<Run>> wait_for(std::vector<Part>& parts, const ColdRange& what) WEFT_EXCLUDES(mutex_);
  std::optional<Task> take_own(const std::vector<Part>& parts) WEFT_REQUIRES(mutex_);
  std::vector<Run> here_of(const Part& part, Range range) const WEFT_REQUIRES(mutex_);
  std::vector<Run> pieces_of(const std::vector<Part>& parts, Range range) const WEFT_REQUIRES(mutex_);

  OpenPlace arrived(const ChunkRun& run) const WEFT_REQUIRES(mutex_);
  bool is_coming(const ContentId& blob) const WEFT_EXCLUDES(mutex_);

  // fetcher_same.cc
  std::optional<Task> take_same() WEFT_REQUIRES(mutex_);
  void compare(const Task& task) WEFT_EXCLUDES(mutex_);
  void compare(const std::shared_ptr<Transfer>& transfer, std::size_t blob) WEFT_EXCLUDES(mutex_);
  Queue& ahead_of(const Transfer& transfer, std::size_t unit) WEFT_REQUIRES(mutex_) {
    return transfer.is_same(unit) ? same_ : ahead_;
  }
  Result<std::optional<std::vector<Digest>>> copy_same(Task& task, const std::vector<ChunkRun>& runs)
      WEFT_EXCLUDES(mutex_);
  std::optional<std::vector<Digest>> read_base(const Task& task, const std::vector<ChunkRun>& runs,
                                               std::span<std::byte> to) WEFT_EXCLUDES(mutex_);
  void leave_same(const Task& task) WEFT_EXCLUDES(mutex_);

  void work();
  void run(Task task);
  std::optional<Task> next() WEFT_EXCLUDES(mutex_);
  std::optional<Task> take_wanted() WEFT_REQUIRES(mutex_);
  std::optional<Task> take_ahead() WEFT_REQUIRES(mutex_);
  Task take(Queue& queue, std::size_t at, Readiness readiness) WEFT_REQUIRES(mutex_);
  static bool dropped(Queue& queue, std::size_t at);
  bool is_idle() const WEFT_REQUIRES(mutex_) {
    return wanted_.empty() && ahead_.empty() && same_.empty() && !swarm_.has_offer();
  }
  void drop_past() WEFT_REQUIRES(mutex_);
  Readiness readiness_of(const std::shared_ptr<Transfer>& transfer, std::size_t unit) const WEFT_REQUIRES(mutex_);
  Readiness readiness_ahead(const Task& task) const WEFT_REQUIRES(mutex_);
  bool goes_on(const Task& task, Readiness readiness) const WEFT_REQUIRES(mutex_);
  void wake_reader() WEFT_EXCLUDES(mutex_);
  Result<std::vector<Digest>> move(Task& task, const std::vector<ChunkRun>& runs);
  bool is_young(const Transfer& transfer) const;
  bool may_still_come(const Transfer& transfer, const Error& error) const;
  Clock::time_point waited_until(const Task& task) const WEFT_EXCLUDES(mutex_);
  void ended(Task& task, const Result<std::vector<Digest>>& digests, Clock::time_point begun) WEFT_EXCLUDES(mutex_);
  Status keep_or_pass(Task& task, const Status& room, std::span<const std::byte> bytes) WEFT_EXCLUDES(mutex_);

  void keep() WEFT_EXCLUDES(mutex_);
  std::shared_ptr<Transfer> due() WEFT_REQUIRES(mutex_);
  void added_whole(Transfer& transfer, const std::vector<FetchedBlob>& blobs, const Status& added)
      WEFT_REQUIRES(mutex_);
  void drop_idle() WEFT_REQUIRES(mutex_);
  void limit_open() WEFT_EXCLUDES(mutex_);

  // fetcher_room.cc: keeps the cache within its bound.
  Status make_room(const Task& task) WEFT_EXCLUDES(mutex_);  // for a running task
  bool is_queued(const std::shared_ptr<Transfer>& transfer) const WEFT_REQUIRES(mutex_);
  void hurry_complete() WEFT_REQUIRES(mutex_);
  struct CacheUse {
    std::uint64_t listed = 0;    // disk bytes of packs in the index
    std::uint64_t unlisted = 0;  // disk bytes of packs that are not in the index yet
    std::uint64_t total() const { return listed + unlisted; }
  };
  Result<CacheUse> cache_use() WEFT_EXCLUDES(mutex_);
  Result<std::uint64_t> evict_for(std::uint64_t bytes) WEFT_EXCLUDES(mutex_);
  void stay_within_cache() WEFT_EXCLUDES(mutex_);
  std::uint64_t coming_bytes() WEFT_EXCLUDES(mutex_);

  Store& store_;
  FetchedCache& cache_;
  const FetchOptions options_;
  const CacheSpace space_;
  FetchSources sources_;
  ManifestFetch manifests_;
  FetchBases bases_;
  Mutex planning_ WEFT_ACQUIRED_BEFORE(mutex_);  // held to begin a transfer
  Mutex making_room_ WEFT_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  Condition wake_;     // a task was queued, or the end
  Condition arrived_;  // units arrived, or blobs entered the index
  Condition keeper_;
  Queue wanted_ WEFT_GUARDED_BY(mutex_);
  Queue ahead_ WEFT_GUARDED_BY(mutex_);
  Queue same_ WEFT_GUARDED_BY(mutex_);  // as ahead_, for units that equal the base
  SwarmFetch swarm_ WEFT_GUARDED_BY(mutex_);
  unsigned absent_running_ WEFT_GUARDED_BY(mutex_) = 0;
  unsigned same_running_ WEFT_GUARDED_BY(mutex_) = 0;
  bool one_polls_ WEFT_GUARDED_BY(mutex_) = false;  // a worker polls for a free source
  std::minstd_rand random_ WEFT_GUARDED_BY(mutex_){std::random_device{}()};
  std::vector<std::shared_ptr<Transfer>> transfers_ WEFT_GUARDED_BY(mutex_);  // and their state
  std::unordered_map<ContentId, Home> homes_ WEFT_GUARDED_BY(mutex_);         // blobs that are not in the index yet
  PassingBytes passing_ WEFT_GUARDED_BY(mutex_){64U << 20U};
  FetchPolicy policy_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t room_ WEFT_GUARDED_BY(mutex_) = 0;          // bytes that fit into the cache without eviction
  bool over_ WEFT_GUARDED_BY(mutex_) = false;               // the cache may exceed its bound
  Clock::time_point full_until_ WEFT_GUARDED_BY(mutex_){};  // the end of the last wait for space (make_room)
  VainEviction in_vain_ WEFT_GUARDED_BY(mutex_);
  RateMeter rate_ WEFT_GUARDED_BY(mutex_);
  SourceCount local_ WEFT_GUARDED_BY(mutex_){"local"};
  bool ending_ WEFT_GUARDED_BY(mutex_) = false;
  Mutex measuring_use_ WEFT_ACQUIRED_BEFORE(mutex_);
  std::uint64_t cache_bytes_ WEFT_GUARDED_BY(measuring_use_) = 0;
  std::optional<Clock::time_point> use_of_ WEFT_GUARDED_BY(measuring_use_);  // when cache_bytes_ was measured
  std::unique_ptr<Swarm> swarming_;                                          // null: no swarms
  std::vector<std::thread> workers_;
  std::thread keeping_;
};

}  // namespace weft
