// Deals with swarms for a Fetcher: makes the calls of its SwarmFetch, hands offered units to the workers, reads them,
// and begins the transfers of other shards.
//
// Threads: a thread of its own makes the calls of VersionSwarms, without the mutex of FetchState if they may call back.
// on_change() only wakes this thread. Workers of the Fetcher call read(), readers call note_read().
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/worker.h"
#include "fetch/cache_room.h"
#include "fetch/fetch_bases.h"
#include "fetch/fetch_planner.h"
#include "fetch/fetch_queue.h"
#include "fetch/fetch_sources.h"
#include "fetch/fetch_state.h"
#include "fetch/manifest_fetch.h"
#include "fetch/same_copies.h"
#include "fetch/unit_outcomes.h"
#include "weft/bytes/cold.h"
#include "weft/bytes/source.h"
#include "weft/bytes/swarm.h"

namespace weft {

class SwarmReads {
 public:
  // What a SwarmReads needs. All outlive it.
  struct Parts {
    VersionSwarms& swarms;
    FetchState& state;
    FetchPlanner& planner;
    FetchSources& sources;
    FetchBases& bases;
    CacheRoom& room;
    UnitOutcomes& outcomes;
    SameCopies& same;
  };

  explicit SwarmReads(const Parts& parts);
  ~SwarmReads() { end(); }
  SwarmReads(const SwarmReads&) = delete;
  SwarmReads& operator=(const SwarmReads&) = delete;
  // Leaves all swarms, and makes no calls any more, except of units that are being read. On one thread.
  void end();

  void wake() { worker_.wake(); }  // also under the mutex of FetchState
  // A reader asks for a range. If it asks for all bytes of a shard of a large version, the other shards are fetched
  // too. While other nodes fetch the version, so are the rest and the other shards of a shard that is read from the
  // start. A read of one tensor changes nothing.
  void note_read(const std::shared_ptr<const DecodedVersion>& content, const ColdRange& what);
  // `expected`: from now on, reads count as if other nodes fetched each version.
  void expect_others(bool expected) WEFT_EXCLUDES(state_.mutex);
  // Reads an offered unit that SwarmFetch::take_offer() has returned.
  void read(std::shared_ptr<OfferedUnit> unit);

 private:
  struct Shard {
    std::shared_ptr<const DecodedVersion> content;
    std::uint32_t file = 0;
    std::uint64_t bytes = 0;  // from its start
  };
  // The shards of a version that are to be fetched, in this order.
  struct Shards {
    std::shared_ptr<const DecodedVersion> content;
    std::optional<Shard> read;  // a reader asks for it in order: it is fetched ahead if there are partners
    std::deque<std::uint32_t> others;
    bool whole = false;       // a reader asks for a whole shard: the others are fetched without partners too
    bool has_joined = false;  // its version joined the swarm
  };

  Result<Worker::Pause> round();
  void make_calls();
  Status make(const SwarmFetch::Call& call);
  void take_offers();
  void leave(const Digest& manifest) WEFT_REQUIRES(state_.mutex);
  void drop_past_shards() WEFT_REQUIRES(state_.mutex);
  // True if other nodes fetch the version, or are expected to.
  bool has_partners(const Digest& manifest) const WEFT_REQUIRES(state_.mutex);
  std::optional<Shard> next_shard();
  void begin(const Shard& shard);
  bool has_room(std::uint64_t bytes);

  std::pair<std::shared_ptr<Transfer>, std::size_t> unit_of(const ChunkRun& chunk) WEFT_REQUIRES(state_.mutex);
  std::optional<FetchTask> next_part(const OfferedUnit& unit, std::span<const RunChunk> chunks, std::size_t& at);
  Status read_part(FetchTask& task, const std::shared_ptr<OfferedUnit>& unit);
  Result<std::vector<Digest>> move(FetchTask& task, const std::shared_ptr<OfferedUnit>& unit);
  void put_back(const FetchTask& task);
  bool has_all(const OfferedUnit& unit, std::span<const RunChunk> chunks);

  VersionSwarms& swarms_;
  FetchState& state_;
  const Parts parts_;
  std::vector<Shards> shards_ WEFT_GUARDED_BY(state_.mutex);
  bool expects_others_ WEFT_GUARDED_BY(state_.mutex) = false;
  bool ended_ = false;
  Worker worker_{"swarm"};
};

}  // namespace weft
