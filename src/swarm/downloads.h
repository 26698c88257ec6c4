// The receiver's part of a swarm: which nodes are asked for units of one version, and which offered units are taken
// (src/swarm/README.md).
//
// kWantsOpen wants are open, spread evenly over the partners and the source. A want is open from next() until it is
// answered without a unit, the offered unit is declined, or its read ends. A hungry receiver (swarm/hunger.h) tells its
// partners so by one more want each. Units of the source do not end hunger: the source repeats units only for a hungry
// receiver. One that lacks nothing sends the sources, and each partner that holds wants of it, one more want: its full
// set ends the session there. The caller passes events, then calls next() until it returns nothing, and joins_again().
// One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "swarm/hunger.h"
#include "swarm/swarm_types.h"
#include "swarm/unit_set.h"

namespace weft {

// The want to send next. Its set of units is Downloads::taken().
struct NextWant {
  SwarmNode node = 0;
  std::optional<std::uint32_t> first;
  bool hungry = false;
};

class Downloads {
 public:
  // A node that answered a want without a unit is asked again after this time; one that failed, after the longer one.
  // The answers to the wants of a session that this node has ended delay nothing: units of the next file may be wanted.
  static constexpr std::chrono::milliseconds kAskAgain{100}, kAskFailedAgain{1'000};
  // The pause before the next want to a slow node, whose read was given up.
  static constexpr std::chrono::milliseconds kAskSlowAgain{10'000};
  static constexpr std::size_t kPartnersMax = 64;  // meet() ignores more
  static constexpr std::size_t kSourcesMax = 16;   // meet_source() ignores more
  // After so many declined units in a row a partner waits for kAskAgain between its wants: it does not look at them.
  static constexpr std::size_t kDeclinedMax = 2 * kWantsOpen;

  // `has`: the units of this node; `wanted`: the units that it fetches. Both are of the same version.
  Downloads(UnitSet has, const UnitSet& wanted, std::uint64_t seed, SwarmTime now);

  // Fetches these units too. One that this node had is lost.
  void want(const UnitSet& units, SwarmTime now);
  void abandon();                            // wants no unit any more; next() ends the sessions at the partners
  void meet(SwarmNode node, SwarmTime now);  // a partner; known ones are no error
  void meet_source(SwarmNode node, SwarmTime now);
  // The node has left: it gets no wants until it is met again. The caller ends its open wants and reads as failed.
  void drop(SwarmNode node);
  // The node has sent wrong bytes: it gets no wants again, and its offers are declined. False: that was known.
  bool ban(SwarmNode node);

  std::optional<NextWant> next(SwarmTime now);
  const UnitSet& taken() const { return taken_; }  // units that this node holds, was promised or does not want
  // A want of this node is answered. True: the caller reads the unit, then calls arrived() or failed(). False: the
  // caller declines the unit, if there is one.
  bool offered(SwarmNode node, std::optional<std::uint32_t> unit, SwarmTime now);
  void unanswered(SwarmNode node, SwarmTime now);                   // a want of this node failed
  void arrived(SwarmNode node, std::uint32_t unit, SwarmTime now);  // verified, and stored
  void failed(SwarmNode node, std::uint32_t unit, SwarmTime now, std::chrono::milliseconds pause = kAskFailedAgain);
  void add(std::uint32_t unit);  // the unit came by another way

  void wait_for(std::uint32_t unit);  // a reader waits for the unit; calls are counted
  void stop_waiting(std::uint32_t unit);
  bool is_waited_for(std::uint32_t unit) const { return readers_.contains(unit); }

  bool is_done() const { return lacking_ == 0; }
  bool is_hungry(SwarmTime now) const;
  bool joins_again(SwarmTime now);  // true: the caller asks the directory for another partner
  // Returns the time of the next call of next() and joins_again(), if no event comes before.
  std::optional<SwarmTime> due(SwarmTime now) const;

  const UnitSet& has() const { return has_; }
  bool knows(SwarmNode node) const { return partners_.contains(node); }  // a partner, or a banned node
  std::size_t partners() const;                                          // those that may get wants
  bool has_receivers() const;                                            // some of these are no sources
  bool is_source(SwarmNode node) const;                                  // a partner that meet_source() named
  std::uint64_t declined() const { return declined_; }

 private:
  struct Partner {
    std::size_t wants = 0;     // not answered yet
    std::size_t ending = 0;    // wants of a session that this node has ended; they are answered first
    std::size_t reads = 0;     // units that it sends
    std::size_t declined = 0;  // its offers in a row
    SwarmTime again{};         // not asked before
    std::uint64_t told = 0;    // the spell of hunger that it knows of
    bool left = false, banned = false, is_source = false;
    bool parted = true;  // no want was sent since one with a full set

    std::size_t open() const { return wants + reads; }
    bool is_there() const { return !left && !banned; }
    bool may_be_asked(bool hungry) const { return is_there() && open() < kWantsOpen + (hungry ? 1 : 0); }
  };
  using Partners = std::map<SwarmNode, Partner>;

  Partner& admit(SwarmNode node, SwarmTime now);
  Partners::iterator least_asked(SwarmTime now);
  NextWant ask(Partners::iterator at, bool hungry);
  std::optional<NextWant> part();
  bool close(SwarmNode node, std::size_t Partner::*open, SwarmTime again);
  bool came(std::uint32_t unit);
  std::optional<std::uint32_t> first() const;

  UnitSet has_, wanted_, taken_;
  std::uint32_t lacking_ = 0;  // wanted and not here
  Partners partners_;
  std::map<std::uint32_t, std::size_t> readers_;  // that wait, by unit
  std::size_t open_ = 0;
  SwarmRandom random_;
  Hunger hunger_;
  std::uint64_t declined_ = 0;
};

}  // namespace weft
