// Calls between a simulated receiver and the directory node: what SwarmSession and SwarmDirectory (src/peers/swarm)
// keep beside the classes of src/swarm. There is one directory node, which does not die.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/worker.h"
#include "peers/swarm/swarm_session.h"
#include "peers/swarm_messages.h"
#include "swarm/introductions.h"
#include "swarm/swarm_types.h"
#include "swarm_events.h"

namespace weft::sim {

// The receiver's part. A call that is not answered within kJoinPatience has failed.
class DirectoryCalls {
 public:
  explicit DirectoryCalls(SwarmTime now) : join_at_(now) {}

  void want_partners() { wants_partners_ = true; }
  // Ends calls that have failed.
  void expire(SwarmTime now);
  // Returns the call to make now: `fetches` or `lives`. The caller gives it a number.
  std::optional<Join::State> next(SwarmTime now);
  void made(std::uint64_t number, Join::State state, SwarmTime now) {
    open_.push_back({number, state, now + kJoinPatience});
  }
  // A call was answered. False: it has failed before.
  bool answered(std::uint64_t number);
  // The partners of an answer are known. `none`: the node has no partner at all.
  void joined(SwarmTime now, bool none);
  void lost_all_partners() { needs_holders_ |= !std::exchange(had_holders_, true); }
  // True, once, if nodes with the whole version are to be asked as sources.
  bool needs_holders() { return std::exchange(needs_holders_, false); }
  bool knows_directory() const { return known_; }
  std::optional<SwarmTime> due() const;  // of expire() and next()

 private:
  struct Call {
    std::uint64_t number = 0;
    Join::State state = Join::State::fetches;
    SwarmTime until{};
  };

  std::deque<Call> open_;  // in the order of their making
  bool wants_partners_ = true, joining_ = false, join_failed_ = false;
  bool needs_holders_ = false, had_holders_ = false;
  bool known_ = false;  // the directory node has introduced this node, and has answered since
  SwarmTime join_at_{}, lives_at_{};
  RetryPause pause_ = SwarmSession::kJoinPause;
};

class DirectoryNode {
 public:
  struct Answer {
    std::uint64_t call = 0;
    Introduction introduction;
  };

  explicit DirectoryNode(Introductions introductions) : introductions_(std::move(introductions)) {}

  void join(Host node, std::string_view location, std::uint64_t call, SwarmTime now);
  void note(Host node, Join::State state, SwarmTime now);  // a state other than `fetches`
  void drop(Host node);
  // Answers joins, and forgets silent nodes.
  std::vector<Answer> run(SwarmTime now);
  SwarmTime due() const;

 private:
  Introductions introductions_;
  std::map<Host, SwarmTime> heard_;        // of members
  std::map<Host, std::uint64_t> waiting_;  // calls
  SwarmTime sweep_at_{};
};

}  // namespace weft::sim
