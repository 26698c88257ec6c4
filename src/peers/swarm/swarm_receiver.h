// This node as a receiver of swarms: it joins the swarm of each version that the fetcher wants, asks partners for units
// and hands the accepted units to the fetcher (SwarmSession has one version).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/time_source.h"
#include "peers/offered_unit.h"
#include "peers/swarm/swarm_calls.h"
#include "peers/swarm/swarm_session.h"
#include "peers/swarm/version_units.h"
#include "weft/bytes/source.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// The state of one version, for the status.
struct FetchedVersion {
  Digest manifest;
  std::uint32_t units = 0, here = 0;
  std::size_t partners = 0;
  ReceivedUnits received;
  std::uint64_t declined = 0;  // offers
  bool hungry = false, done = false;
};

// Units that were stored and offers that were declined, of all versions, forgotten ones too.
struct ReceivedSums {
  ReceivedUnits received;
  std::uint64_t declined = 0;
};

// Any thread; run() on one at a time. It calls out without a lock.
class SwarmReceiver final : public PeerOffer::Owner, public std::enable_shared_from_this<SwarmReceiver> {
 public:
  static constexpr std::size_t kVersionsMax = 64;

  // Returns ids of nodes for a version, the best first.
  using Nodes = std::function<std::vector<std::string>(const Digest& manifest)>;
  struct Parts {
    FindUnits units;
    SwarmCalls& calls;  // outlives this
    std::string self;
    std::function<std::string()> location;  // Join::location of the next join. It must not call this object
    Nodes directories;                      // at most two
    Nodes holders;                          // nodes that probably have the whole version
    std::function<void()> wake;             // called when run() has work. It must not call this object
    std::uint64_t seed = 0;
    const TimeSource& time = steady_time();
    bool reads_origin = false;  // this node can read units that are offered by name
    // Called when a node cannot be reached: nobody reads what it was offered. It must not call this object. May be
    // empty.
    std::function<void(const std::string& node)> gone = {};
  };
  explicit SwarmReceiver(Parts parts);

  // As VersionSwarms. Errc::busy: too many versions. Errc::invalid: a chunk that the version lacks.
  Status want(const Digest& manifest, std::span<const ChunkRun> runs, bool coded = false);
  void leave(const Digest& manifest);
  void wait_for(const Digest& manifest, const ChunkRun& run);
  void stop_waiting(const Digest& manifest, const ChunkRun& run);
  std::shared_ptr<OfferedUnit> take();
  bool has_partners(const Digest& manifest) const;
  void on_change(std::function<void()> call);

  void met(const Digest& manifest, std::string_view node);  // the node becomes a partner, because it asked for units
  void left(std::string_view node);                         // the node has left the cluster
  // This node has evicted units of the version. If it fetches no unit, it leaves the swarm: other nodes would ask in
  // vain.
  void lost(const Digest& manifest);
  void arrived(const Digest& manifest, std::span<const ChunkRun> runs);  // as BlobSource::arrived
  void ended(const PeerOffer& offer, bool arrived) override;
  void refuted(const PeerOffer& offer) override;

  // Makes calls. Returns the time of the next call, if wake() does not come before.
  std::optional<SwarmTime> run();
  void end();  // drops all versions and offers, and calls nobody any more

  std::vector<FetchedVersion> versions() const;
  ReceivedSums sums() const;

 private:
  using Sessions = std::map<Digest, std::unique_ptr<SwarmSession>>;
  using Due = std::vector<std::pair<Digest, std::uint64_t>>;  // sessions: manifest and serial number
  struct JoinCall {
    std::uint64_t session = 0;
    std::string node;
    Join join;
  };
  struct Asked {
    SwarmNode number = 0;
    std::string node;
    bool names = false;  // as in the Want
  };
  struct Calls {
    std::vector<JoinCall> words;
    std::vector<std::pair<std::uint64_t, WantCall>> wants;  // with the serial number of the session
  };

  void join_all() WEFT_EXCLUDES(mutex_);
  void meet_holders() WEFT_EXCLUDES(mutex_);
  template <typename Which>
  Due due_for(const Which& which) WEFT_EXCLUDES(mutex_);
  Calls calls() WEFT_EXCLUDES(mutex_);
  void begin_join(const JoinCall& call);
  void begin_word(const JoinCall& call);
  void begin_want(std::uint64_t session, WantCall call);
  void join_answered(const JoinCall& call, const Result<std::unique_ptr<Answer>>& outcome) WEFT_EXCLUDES(mutex_);
  void word_answered(const JoinCall& call, bool ok) WEFT_EXCLUDES(mutex_);
  void want_answered(const Digest& manifest, std::uint64_t session, const Asked& asked,
                     Result<std::unique_ptr<Answer>> outcome) WEFT_EXCLUDES(mutex_);
  void tell_change() WEFT_EXCLUDES(mutex_, call_mutex_);
  SwarmSession* find(const Digest& manifest) WEFT_REQUIRES(mutex_);
  SwarmSession* find(const Digest& manifest, std::uint64_t serial) WEFT_REQUIRES(mutex_);
  void wake() WEFT_REQUIRES(mutex_);
  std::optional<SwarmTime> due(SwarmTime now) const WEFT_EXCLUDES(mutex_);

  const Parts parts_;
  mutable Mutex mutex_;
  bool ended_ WEFT_GUARDED_BY(mutex_) = false;
  SwarmRandom random_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t serials_ WEFT_GUARDED_BY(mutex_) = 0;
  Sessions sessions_ WEFT_GUARDED_BY(mutex_);
  ReceivedSums sums_ WEFT_GUARDED_BY(mutex_);
  Calls last_ WEFT_GUARDED_BY(mutex_);  // of sessions that were left
  std::deque<std::shared_ptr<PeerOffer>> offers_ WEFT_GUARDED_BY(mutex_);
  Mutex call_mutex_;  // held during a call, so that on_change() waits for it
  std::function<void()> call_ WEFT_GUARDED_BY(call_mutex_);
};

}  // namespace weft
