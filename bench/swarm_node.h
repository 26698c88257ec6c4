// A node of the simulator of swarms: the daemon's own Downloads and Uploads, and what src/peers/swarm and src/fetch
// keep beside them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "swarm/downloads.h"
#include "swarm/read_times.h"
#include "swarm/units.h"
#include "swarm/uploads.h"
#include "swarm_joins.h"
#include "swarm_unit_reads.h"

namespace weft::sim {

// The uploads of a sender that have not ended, as SwarmSender keeps them.
class RunningUploads {
 public:
  struct Upload {
    Host to = 0;
    std::uint32_t unit = 0;
    SwarmTime began{};
  };

  // True for a slow node that is to end an upload before it gets another one.
  bool waits_for_read(Host to) const;
  void begin(Host to, std::uint32_t unit, SwarmTime now) { running_.push_back({to, unit, now}); }
  // Returns false if the upload does not run.
  bool end(Host to, std::uint32_t unit, bool read);
  // Ends an upload that has lasted for SwarmSender::kUploadMax. Its node is slow until it has read a unit.
  std::optional<Upload> take_old(SwarmTime now);
  void forget(Host node);
  std::optional<SwarmTime> due() const;  // of take_old()

 private:
  std::vector<Upload> running_;  // in the order of their begin
  std::set<Host> slow_;
};

struct SimNode {
  SimNode(const Units& units, std::uint64_t seed, SwarmTime now)
      : downloads(UnitSet(units.count()), UnitSet::full(units.count()), seed, now),
        uploads(units.count(), share, units.chunks_per_unit()),
        calls(now),
        begun(now),
        moved(now),
        reader_since(now) {}

  bool is_in_swarm() const { return fetches && !done && !left; }

  // Takes a want by its number. False: it has ended.
  bool take_want(std::uint64_t number);
  // Takes a want whose partner has given nothing for kWantPatience, and returns the partner.
  std::optional<Host> take_silent_want(SwarmTime now);
  std::optional<SwarmTime> wants_due(SwarmTime now) const;  // of take_silent_want(), after it has returned nothing

  // Returns true if a read of the unit by the ordinary way has begun.
  bool has_asked(std::uint32_t unit) const;
  // The times at which the node leaves its swarm, and at which its reader asks a node with the whole version, if no
  // unit comes before.
  SwarmTime leaves_at() const;
  SwarmTime asks_at() const;

  struct Want {
    std::uint64_t number = 0;
    Host to = 0;
    SwarmTime sent{};
  };

  UploadShare share;
  Downloads downloads;
  Uploads uploads;
  RunningUploads running;
  bool fetches = false, done = false;
  bool left = false;  // the swarm: all other units come by the ordinary way
  std::optional<SwarmTime> timer;

  DirectoryCalls calls;
  std::map<Host, SenderLink> links;   // never removed: pieces point to them
  std::vector<Want> wants;            // open ones, in the order of their sending
  std::map<Host, unsigned> silences;  // of partners, in a row
  std::vector<std::uint64_t> reads;   // of the swarm, in the order of their begin
  std::vector<std::uint32_t> asked;   // as has_asked()
  ReadTimes read_times;
  const SwarmTime begun;
  SwarmTime moved;           // the last unit that the swarm gave
  Nanoseconds hashed = 0;    // when the thread that verifies is free
  std::uint32_t reader = 0;  // the unit that the reader waits for
  SwarmTime reader_since;

 private:
  SwarmTime silent_at(const Want& want) const;
};

}  // namespace weft::sim
