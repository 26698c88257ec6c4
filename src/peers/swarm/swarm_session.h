// One version that this node fetches by a swarm: what it asks of which node (swarm/downloads.h), and when it joins the
// swarm at a directory node. Makes no calls.
//
// While no directory node answers, or if all nodes that it names are silent, the nodes that are known to hold the
// version take the place of partners.
//
// A directory node that is the clerk of the origin is asked if there is no source, or the source lacks units. Its
// offers name units to read at the origin. The session reports the end of each such read, and each offer that it
// declines, by its next word to the directory node.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/worker.h"
#include "peers/messages.h"
#include "peers/offered_unit.h"
#include "peers/swarm/local_units.h"
#include "peers/swarm/node_numbers.h"
#include "peers/swarm/version_units.h"
#include "swarm/downloads.h"
#include "swarm/read_times.h"
#include "weft/cluster/exchange.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// A Want to send. Its outcome goes to SwarmSession::answered().
struct WantCall {
  std::string node;
  SwarmNode number = 0;
  Want want;
};

// A unit to read.
struct AcceptedUnit {
  std::uint32_t unit = 0;
  OfferPlace place;
  UnitGiver giver = UnitGiver::partner;
  GivenUp given_up;
};

// Not thread-safe.
class SwarmSession {
 public:
  static constexpr std::chrono::seconds kLivesEvery{20};  // between two words to the directory node
  static constexpr std::chrono::seconds kDoneKept{60};    // then a session that lacks nothing is over
  static constexpr std::size_t kHoldersMax = 8;           // meet_holders() ignores more
  // A source that lacks units, as a publisher may for a moment, is asked again after this time.
  static constexpr std::chrono::milliseconds kLostSource{500};
  // The pause after all directory nodes have failed.
  static constexpr RetryPause kJoinPause{std::chrono::milliseconds(500), std::chrono::milliseconds(8'000)};
  // After so many silent wants in a row the node is no partner any more.
  static constexpr unsigned kSilencesMax = 2;

  // `reads_origin`: this node can read units that a clerk names.
  SwarmSession(const Digest& manifest, std::shared_ptr<const VersionUnits> version, std::string self, bool reads_origin,
               std::uint64_t serial, std::uint64_t seed, SwarmTime now);

  const VersionUnits& version() const { return *version_; }
  std::uint64_t serial() const { return serial_; }  // no other session has it

  // A unit that this node had is lost. With `names`, partners and the source name the units that they offer from now on
  // (Want::names).
  void want(const UnitSet& units, bool names, SwarmTime now);
  // Wants nothing any more. next_want() then ends the session at the partners; nothing else may be called.
  void abandon() { downloads_.abandon(); }
  void arrived(std::span<const ChunkRun> runs, SwarmTime now);  // by the swarm or another way
  void wait_for(const ChunkRun& run);
  void stop_waiting(const ChunkRun& run);
  void met(std::string_view node, SwarmTime now);  // the node asked this one for units: it lives, and becomes a partner
  void drop(std::string_view node);                // it has left the cluster
  void ban(std::string_view node);

  // Returns the next want to send.
  std::optional<WantCall> next_want(SwarmTime now);
  // A want was answered; `names`: as in that Want. Returns the unit to read, which owns the answer. Otherwise the
  // caller drops the answer.
  std::optional<AcceptedUnit> answered(SwarmNode node, bool names, Result<std::unique_ptr<Answer>>& outcome,
                                       SwarmTime now);
  // An accepted unit is verified and stored, or was dropped.
  void read(std::string_view node, std::uint32_t unit, bool arrived, SwarmTime now);

  // A slow read (swarm/read_times.h) is given up if a reader waits for its unit, or if the node lacks no other unit.
  // The unit then comes from another node.
  void give_up_slow_reads(SwarmTime now);

  // True if it is time to join. The caller then calls begin_join(), sends the message, and calls joined() or
  // join_failed().
  bool join_is_due(SwarmTime now);
  // Returns the directory node to ask: the first, and after a failure the next. Nothing: all directory
  // nodes have failed, and join_is_due() returns true after a pause.
  std::optional<std::string> begin_join(std::span<const std::string> directories, SwarmTime now);
  void joined(const std::string& directory, const Partners& partners, SwarmTime now);
  void join_failed(SwarmTime now);
  // True if the caller passes the holders of the version to meet_holders(), because no partner is known.
  bool needs_holders() const { return needs_holders_; }
  void meet_holders(std::span<const std::string> holders, SwarmTime now);
  // Returns a word for the directory node that is due: `lives` or `finished`, also to report units.
  struct Word {
    std::string directory;
    Join::State state = Join::State::lives;
    std::vector<std::uint32_t> read, unread;  // as in a Join
  };
  std::optional<Word> word(SwarmTime now);
  void word_failed();                                          // the directory node did not answer
  const std::string& directory() const { return directory_; }  // the one that introduced this node; "": none

  bool is_over(SwarmTime now) const;
  // Returns the next time at which a call above returns something, if no event comes before.
  std::optional<SwarmTime> due(SwarmTime now) const;

  const Downloads& downloads() const { return downloads_; }
  const ReceivedUnits& received() const { return received_; }

 private:
  struct Read {
    SwarmNode node = 0;
    UnitGiver giver = UnitGiver::partner;
    SwarmTime begun{};
    GivenUp given_up = std::make_shared<std::atomic<bool>>(false);
  };
  static constexpr std::size_t kNamesMax = 1'024;  // then names of nodes that are no partners are forgotten

  bool is_partner(std::string_view node) const { return !node.empty() && node != self_; }
  std::optional<SwarmNode> number_of(std::string_view node);
  bool is_clerk(SwarmNode node) const { return clerk_number_ == node; }
  UnitGiver giver_of(SwarmNode node) const;
  void meet_clerk(const std::string& node, SwarmTime now);
  void lost_source(SwarmTime now);
  Result<OfferHead> checked(const Answer& answer, SwarmNode node, bool names) const;
  void was_silent_for(SwarmNode node);
  void done_since(SwarmTime now);
  std::optional<SwarmTime> slow_at(std::uint32_t unit, const Read& read) const;
  void note_hunger(SwarmTime now);

  const Digest manifest_;
  const std::shared_ptr<const VersionUnits> version_;
  const std::string self_;
  const bool reads_origin_;
  const std::uint64_t serial_;
  Downloads downloads_;
  NodeNumbers nodes_;
  LocalUnits local_;                     // chunks that arrived() reported
  std::map<std::uint32_t, Read> reads_;  // of accepted units
  ReadTimes read_times_;
  std::map<SwarmNode, unsigned> silences_;  // in a row
  std::string source_;                      // as the directory node named it
  std::string lost_source_;                 // a node that was named, and has said that it lacks units
  SwarmTime lost_until_{};
  std::string clerk_;                        // a directory node that is asked as the source; "": none
  std::string spare_clerk_;                  // the directory node, if it named itself as a clerk
  std::optional<SwarmNode> clerk_number_;    // of any clerk, and of no node: a clerk may be a partner as well
  std::deque<std::uint32_t> read_, unread_;  // units to report to the clerk
  ReceivedUnits received_;
  bool names_ = false;  // wants ask for names

  bool hungry_ = false;  // and logged

  bool wants_partners_ = true, joining_ = false, needs_holders_ = false;
  bool had_holders_ = false;  // since the last answer of a directory node, or the failure of all
  std::size_t directories_tried_ = 0;
  SwarmTime join_at_{};
  RetryPause join_pause_;
  std::string directory_;
  SwarmTime lives_at_{};
  bool finished_ = false;             // and the directory node was told
  std::optional<SwarmTime> done_at_;  // when the last wanted unit came
};

}  // namespace weft
