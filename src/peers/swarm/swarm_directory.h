// This node as the directory node of swarms: it introduces the nodes that fetch a version to each other
// (swarm/introductions.h).
//
// A Join that asks for partners waits, without a thread, until run() answers it. Every other Join is answered at once.
// Hostile joins cost a bounded amount of memory: versions, waiting joins and members of all versions are bounded, and
// silent members and versions are forgotten. A node that joins for ever new versions displaces versions with as few
// members, and no swarm of several nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/time_source.h"
#include "peers/swarm/node_numbers.h"
#include "peers/swarm_messages.h"
#include "swarm/introductions.h"
#include "weft/cluster/exchange.h"
#include "weft/content.h"

namespace weft {

// The state of one version, for the status.
struct IntroducedVersion {
  Digest manifest;
  std::size_t members = 0;
};

// Any thread; run() on one at a time. It calls out without a lock.
class SwarmDirectory {
 public:
  // Then the version with the fewest members is forgotten, and of equals the one that was silent for longest.
  static constexpr std::size_t kVersionsMax = 1'024;
  static constexpr std::size_t kMembersMax = 131'072;  // of all versions; further nodes are refused with Errc::busy
  static constexpr std::size_t kWaitingMax = 4'096;    // joins; more are refused with Errc::busy
  // Between two looks for nodes that were silent for Introductions::kSilence, which are forgotten.
  static constexpr std::chrono::seconds kSweepEvery{10};

  // Returns the node to name as the source of a version; "": none is known. May read the disk.
  using Source = std::function<std::string(const Digest& manifest)>;
  // `wake`: called when run() has work before the time that it returned. It must not call this object.
  // `is_clerk`: this node is the clerk of the origin, for nodes that may ask the source.
  SwarmDirectory(Source source, std::function<void()> wake, std::uint64_t seed, const TimeSource& time = steady_time(),
                 bool is_clerk = false);

  void receive(std::string_view node, const Join& join, PendingReply reply);
  void unwanted(std::string_view node);  // as PeerServer::unwanted
  void left(std::string_view node);      // the node has left the cluster
  // Answers joins. Returns the time of the next call, if wake() does not come before.
  std::optional<SwarmTime> run();
  void end();  // drops all replies, refuses joins, and calls nobody any more

  std::vector<IntroducedVersion> versions() const;
  std::size_t members(const Digest& manifest) const;

 private:
  struct Session {
    explicit Session(std::uint64_t seed) : introductions(seed) {}
    Introductions introductions;
    NodeNumbers nodes;
    std::map<SwarmNode, SwarmTime> heard;
    std::map<SwarmNode, PendingReply> waiting;  // by node
    SwarmTime last_heard{};
  };
  using Sessions = std::map<Digest, std::unique_ptr<Session>>;
  struct Waiting {
    Digest manifest;
    SwarmNode node = 0;
    PendingReply reply;
  };
  struct Answer {
    std::string node;
    std::vector<std::string> partners;
    bool may_ask_source = false;
    PendingReply reply;
  };
  using Answers = std::vector<std::pair<Digest, std::vector<Answer>>>;
  // Replies that nobody waits for. Their owner drops them without a lock.
  using Dropped = std::vector<PendingReply>;

  bool wait(std::string_view node, const Join& join, PendingReply& reply, Dropped& dropped) WEFT_EXCLUDES(mutex_);
  void note(std::string_view node, const Join& join, Dropped& dropped) WEFT_EXCLUDES(mutex_);
  Session& session(const Digest& manifest, Dropped& dropped) WEFT_REQUIRES(mutex_);
  void drop_version(Sessions::iterator at, Dropped& dropped) WEFT_REQUIRES(mutex_);
  void drop(Session& session, SwarmNode node, Dropped& dropped) WEFT_REQUIRES(mutex_);
  void drop_gone(Dropped& dropped) WEFT_EXCLUDES(mutex_);
  void drop_unwanted() WEFT_EXCLUDES(mutex_);
  std::vector<Waiting> take_suspects() WEFT_REQUIRES(mutex_);
  void drop_silent(SwarmTime now, Dropped& dropped) WEFT_EXCLUDES(mutex_);
  void give(const Digest& manifest, Answer& answer, const std::string& source) const;
  Answers introduce(SwarmTime now) WEFT_EXCLUDES(mutex_);
  std::vector<Answer> answers_of(Session& session, SwarmTime now) WEFT_REQUIRES(mutex_);
  std::optional<SwarmTime> due() const WEFT_EXCLUDES(mutex_);

  const Source source_;
  const std::function<void()> wake_;
  const TimeSource& time_;
  const bool is_clerk_;
  mutable Mutex mutex_;
  bool ended_ WEFT_GUARDED_BY(mutex_) = false;
  SwarmRandom random_ WEFT_GUARDED_BY(mutex_);
  Sessions sessions_ WEFT_GUARDED_BY(mutex_);
  std::size_t members_ WEFT_GUARDED_BY(mutex_) = 0;         // of all versions
  std::size_t waiting_ WEFT_GUARDED_BY(mutex_) = 0;         // joins, of all versions
  std::set<std::string> gone_ WEFT_GUARDED_BY(mutex_);      // nodes that left the cluster
  std::set<std::string> suspects_ WEFT_GUARDED_BY(mutex_);  // nodes with replies that may be unwanted
  SwarmTime sweep_at_ WEFT_GUARDED_BY(mutex_){};
};

}  // namespace weft
