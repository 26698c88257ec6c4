// Fetches bytes to this node, in the daemon. Any number of readers share one transfer of a chunk. The
// fetcher takes the chunk from the cheapest source, verifies it, and stores it in a cached pack.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "blobs/local_bytes.h"
#include "fetch/cache_room.h"
#include "fetch/fetch_bases.h"
#include "fetch/fetch_options.h"
#include "fetch/fetch_planner.h"
#include "fetch/fetch_sources.h"
#include "fetch/fetch_state.h"
#include "fetch/fetched_bytes.h"
#include "fetch/manifest_fetch.h"
#include "fetch/same_copies.h"
#include "fetch/swarm_reads.h"
#include "fetch/transfer.h"
#include "fetch/unit_outcomes.h"
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
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override { return bytes_.here(runs); }
  Result<std::vector<Digest>> digests(const ContentId& id) override { return bytes_.digests(id); }
  // Puts the fetched bytes of a version into the store's index, durably; also `blobs`, which have come for this version
  // or another one.
  Status wait_indexed(VersionId version, std::span<const ContentId> blobs = {});
  // Evicts packs of the cache, as FetchedCache::evict(), and tells the sources.
  Result<EvictReport> evict(const EvictOptions& options) { return room_.evict(options); }
  // Indexes everything that has arrived and closes idle transfers, so that eviction can take their packs.
  void let_go();
  // As CacheRoom::make_room(), for a pack that no transfer fills.
  Status make_room(const FetchPack& pack, std::uint64_t bytes) { return room_.make_room(pack, bytes); }
  FetchStatus status() const;
  // True if a rate of this node holds back traffic of this class.
  bool is_held(Traffic traffic) const { return options_.gate && options_.gate->holds(traffic, PaceEnd::origin); }
  // Returns the disk space of fetched packs in bytes, indexed or not; at most one second old.
  std::uint64_t cache_bytes() { return room_.used_bytes(); }

 private:
  using Clock = Transfer::Clock;
  static std::pair<std::size_t, std::size_t> units_of(const RangePart& part, Range range);
  void want_neighbours(const RangePart& last, const ColdRange& what) WEFT_REQUIRES(state_.mutex);
  std::optional<Status> outcome(std::vector<RangePart>& parts, bool all_kept, SwarmFetch::Reader& reader)
      WEFT_REQUIRES(state_.mutex);
  void queue(std::vector<RangePart>& parts, const ColdRange& what, bool all_kept) WEFT_REQUIRES(state_.mutex);
  static std::uint64_t bytes_here(const RangePart& part, Range range);
  void count_here(const std::vector<RangePart>& parts, Range range) WEFT_REQUIRES(state_.mutex);
  Result<std::vector<Run>> wait_for(std::vector<RangePart>& parts, const ColdRange& what) WEFT_EXCLUDES(state_.mutex);
  std::vector<Run> here_of(const RangePart& part, Range range) const WEFT_REQUIRES(state_.mutex);
  std::vector<Run> pieces_of(const std::vector<RangePart>& parts, Range range) const WEFT_REQUIRES(state_.mutex);

  void work();
  void run(FetchTask task);
  std::optional<FetchTask> next() WEFT_EXCLUDES(state_.mutex);
  Result<std::vector<Digest>> move(FetchTask& task, const std::vector<ChunkRun>& runs);
  bool is_young(const Transfer& transfer) const;
  Clock::time_point waited_until(const FetchTask& task) const WEFT_EXCLUDES(state_.mutex);

  void keep() WEFT_EXCLUDES(state_.mutex);
  void added_whole(Transfer& transfer, const std::vector<FetchedBlob>& blobs, const Status& added)
      WEFT_REQUIRES(state_.mutex);

  const FetchOptions options_;
  FetchSources sources_;
  ManifestFetch manifests_;
  FetchState state_;
  FetchedBytes bytes_;
  FetchBases bases_;
  FetchPlanner planner_;
  CacheRoom room_;
  UnitOutcomes outcomes_;
  SameCopies same_;
  bool one_polls_ WEFT_GUARDED_BY(state_.mutex) = false;  // a worker polls for a free source
  ColdPolicy cold_ WEFT_GUARDED_BY(state_.mutex) = ColdPolicy::automatic;
  std::unique_ptr<SwarmReads> swarming_;  // null: no swarms
  std::vector<std::thread> workers_;
  std::thread keeping_;
};

}  // namespace weft
