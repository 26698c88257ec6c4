// The units of transfers that swarms are to bring (weft/bytes/swarm.h), the readers that wait for them, and the offered
// units that wait for a worker.
//
// It has no thread and no lock: its owner guards it (FetchState). Calls of VersionSwarms and OfferedUnit may call back
// into the Fetcher, so none is made under its mutex. This lists the calls, and SwarmReads makes them (swarm_reads.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "fetch/transfer.h"
#include "weft/bytes/source.h"
#include "weft/bytes/swarm.h"
#include "weft/content.h"

namespace weft {

// All nodes that begin to read a file ask for its first bytes at once. A reader in order begins in these.
inline constexpr std::uint64_t kFileStart = 4U << 20U;

class SwarmFetch {
 public:
  using Clock = Transfer::Clock;
  struct Call {
    enum class Kind : std::uint8_t { want, leave, wait_for, stop_waiting };
    Kind kind = Kind::want;
    Digest manifest;
    std::vector<ChunkRun> runs;
    bool coded = false;  // of `want`: some of the runs have bases
  };
  struct Unit {
    std::shared_ptr<Transfer> transfer;
    std::size_t number = 0;
  };
  class Reader;

  // A swarm that gave nothing for this time is left, for the whole patience with silent sources.
  static constexpr Clock::duration silence_max(Clock::duration patience) { return patience / 2; }
  // A reader in order waits for a swarm for this time.
  static constexpr Clock::duration reader_wait(Clock::duration patience) { return patience * 3 / 10; }

  // `patience`: with silent sources. `reads_max`: offered units to read at once. `wake` is called when take_calls() has
  // calls; it must not wait.
  SwarmFetch(Clock::duration patience, std::size_t reads_max, std::function<void()> wake)
      : patience_(patience), reads_max_(reads_max), wake_(std::move(wake)) {}

  // True for a file's transfer of a version with so many bytes.
  static bool may_bring(const Transfer& transfer, std::uint64_t version_bytes);

  // True if a unit should join the swarm now. A unit that equals its base never does. A unit of a straight transfer
  // joins only a swarm that the node is in.
  bool takes(const Transfer& transfer, std::size_t unit) const;
  bool has_swarm(const Transfer& transfer) const;  // true if it takes units of the transfer that differ from the base
  // Leaves a unit that it takes to the swarm. The unit is neither local nor running.
  void add(const std::shared_ptr<Transfer>& transfer, std::size_t unit);
  // Forgets units that no swarm brings any more, because they keep their transfers open.
  void drop_past();
  bool has(const Transfer& transfer) const;       // the swarm is to bring units of it
  std::size_t transfers(const Digest& manifest);  // whose units the swarm is to bring
  std::size_t units() const;                      // that swarms are to bring
  bool rests(const Digest& manifest) const;       // its swarm was left a moment ago
  bool has_joined(const Digest& manifest) const { return versions_.contains(manifest); }
  bool is_in_use() const { return !versions_.empty(); }  // silent() has to be called now and then
  std::vector<Digest> manifests() const;                 // with a swarm, or one that rests
  // Returns the versions whose swarm is to be left: it gave nothing for too long.
  std::vector<Digest> silent();
  // Leaves the swarm of a version. Missing units of transfers with readers become queued, and are returned. Other
  // missing units become idle.
  std::vector<Unit> leave(const Digest& manifest);
  // Puts a running unit back whose read failed. True: the swarm brings it again. False: the unit is queued.
  bool put_back(const std::shared_ptr<Transfer>& transfer, std::size_t unit);
  std::vector<Call> take_calls() { return std::exchange(calls_, {}); }  // in the order in which to make them

  void offer(std::shared_ptr<OfferedUnit> unit) { offers_.push_back(std::move(unit)); }
  bool has_offer() const { return !offers_.empty() && reads_ < reads_max_; }
  std::shared_ptr<OfferedUnit> take_offer();  // to be read; null: none
  // Ends the read of a unit. `gave`: some chunks have arrived.
  void ended(const Digest& manifest, bool gave);

 private:
  struct Version {
    std::map<std::shared_ptr<Transfer>, std::set<std::size_t>> units;  // also running ones, and some that are here
    Clock::time_point moved = Clock::now();                            // when a unit last came, or the first was added
    std::size_t reads = 0;                                             // running
    Clock::time_point rests_until{};
  };
  static void drop_past(Version& version);
  static bool lacks_some(const Transfer& transfer, const std::set<std::size_t>& units);
  static std::size_t lacks(const Transfer& transfer, const std::set<std::size_t>& units);
  void call(Call::Kind kind, const Transfer& transfer, std::size_t unit);

  const Clock::duration patience_;
  const std::size_t reads_max_;
  const std::function<void()> wake_;
  std::map<Digest, Version> versions_;
  std::vector<Call> calls_;
  std::deque<std::shared_ptr<OfferedUnit>> offers_;
  std::size_t reads_ = 0;
};

// A reader that waits. While it lives, the swarms know the units that it waits for. FetchState guards it too.
class SwarmFetch::Reader {
 public:
  // `any_order`: the reader wants many bytes, in any order.
  Reader(SwarmFetch& swarm, bool any_order) : swarm_(swarm), any_order_(any_order) {}
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Waits for a unit in the swarm, or one that a worker reads, or a held one. False: the unit should come by the
  // ordinary way, because the reader has waited for long, or the swarm was left.
  bool waits_for(const std::shared_ptr<Transfer>& transfer, std::size_t unit);

 private:
  SwarmFetch& swarm_;
  const bool any_order_;
  std::map<std::pair<std::shared_ptr<Transfer>, std::size_t>, Clock::time_point> since_;
};

}  // namespace weft
