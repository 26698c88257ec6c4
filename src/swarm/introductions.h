// The directory's part of a swarm: who becomes a partner of whom for one version (src/swarm/README.md).
//
// A join waits for kJoinWait at most. All nodes that joined meanwhile are put into two random rings for each location,
// so that each has four partners; it also gets up to four of those that joined earlier. A few pairs of nodes join each
// location to the others, so that bytes pass between them once or twice. The first kSourceAskers nodes may ask the
// source, wherever they are. The caller passes events, then calls introduce(). One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "swarm/swarm_types.h"

namespace weft {

struct Introduction {
  SwarmNode node = 0;
  std::vector<SwarmNode> partners;
  bool may_ask_source = false;
  bool operator==(const Introduction&) const = default;
};

class Introductions {
 public:
  static constexpr std::chrono::milliseconds kJoinWait{30};
  static constexpr std::chrono::seconds kSilence{60};  // then a member is forgotten
  static constexpr std::size_t kSourceAskers = 8;
  static constexpr std::size_t kEarlierPartners = 4;
  static constexpr std::size_t kPartnersMax = 12;  // a node is introduced to no more; hungry ones get more
  static constexpr std::size_t kBridges = 4;       // pairs of nodes from a location to others
  static constexpr std::size_t kMembersMax = 65'536;
  static constexpr std::size_t kLocationsMax = 512;  // members of further ones count as without a location

  explicit Introductions(std::uint64_t seed) : random_(seed) {}

  // A node begins to fetch, or is hungry and asks again. A member keeps its first location. False: there are
  // kMembersMax members.
  bool join(SwarmNode node, std::string_view location, SwarmTime now);
  void hear(SwarmNode node, SwarmTime now);  // a sign of life
  void finish(SwarmNode node);               // the node lacks no wanted unit, and stays a partner of others
  void leave(SwarmNode node);                // its session has ended
  // Answers the joins that have waited long enough.
  std::vector<Introduction> introduce(SwarmTime now);
  std::optional<SwarmTime> due() const;  // of introduce()
  std::size_t members() const { return members_.size(); }
  std::uint64_t examined() const { return examined_; }  // members, partners and locations, in all searches so far

 private:
  struct Member {
    std::string location;
    SwarmTime heard{};
    std::size_t partners = 0;
    std::size_t place = 0;   // in the list of its location
    std::uint64_t turn = 0;  // number of the member that it gets when it is hungry, random at first
    bool introduced = false, asks_source = false, finished = false;
    bool bridged = false;  // has a partner at another location
  };
  using Answers = std::map<SwarmNode, Introduction>;
  using Nodes = std::vector<SwarmNode>;
  struct Location {
    Nodes nodes;  // introduced ones
    std::size_t bridged = 0;
  };
  static constexpr std::size_t kEarlierTries = 4 * kEarlierPartners;  // random draws

  void forget_silent(SwarmTime now);
  void remove(std::map<SwarmNode, Member>::iterator at);
  void introduce_at(Answers& answers, const std::string& location, Nodes& newcomers);
  bool connect(Answers& answers, SwarmNode one, SwarmNode other);
  void add_earlier(Answers& answers, SwarmNode node);
  void add_bridges(Answers& answers, Location& here, const Nodes& newcomers);
  void add_one(Answers& answers, SwarmNode node);
  std::optional<SwarmNode> other_member(const Member& member, bool elsewhere, std::uint64_t number) const;
  void let_ask_source(Answers& answers);
  void shuffle(Nodes& nodes);

  SwarmRandom random_;
  std::map<SwarmNode, Member> members_;
  std::map<std::string, Location> introduced_;
  std::set<SwarmNode> joining_;  // not answered yet
  SwarmTime joined_at_{};        // the first of them
  SwarmTime heard_{};            // no member was heard earlier: it saves a scan of all members
  std::size_t source_askers_ = 0;
  mutable std::uint64_t examined_ = 0;
};

}  // namespace weft
