// The sender's part of a swarm: which want gets which unit of one version (src/swarm/README.md).
//
// Of the units that an asker lacks it gets the one that was sent least often, and of equals the one that came last: so
// a new unit spreads at once ("latest useful chunk": Bonald et al., SIGMETRICS 2008). A source sends each unit once, in
// the order of the version, first to the askers that lack least. It sends a unit again if the upload failed. A hungry
// asker, whose partners have no unit for it, gets one again after kResendAfter, or once the receiver's session ended. A
// want that lacks no unit ends the session of its asker. After the last session a source counts no unit as sent any
// more: its receivers may have lost the units by the next session.
//
// The caller passes events, then calls next() until it returns nothing. One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "swarm/swarm_types.h"
#include "swarm/unit_set.h"

namespace weft {

// The wants and uploads of one node, for all versions. If its uploads are uploads_max, the end of one lets
// Uploads::next() of any version answer.
struct UploadShare {
  std::size_t waiting = 0;  // wants, at most kWantsWaiting
  std::size_t uploads = 0;  // at most uploads_max
  std::size_t uploads_max = kUploadsAtOnce;
  std::size_t aside = 0;  // further uploads, each older than Uploads::kPlaceMax. At most kUploadsAsideMax
};

struct UnitWant {
  UnitSet has;                              // units that the asker has, was promised or does not want
  std::optional<std::uint32_t> first = {};  // the unit that a reader of the asker waits for
  bool hungry = false;                      // the asker's partners had nothing for a while
  std::uint8_t traffic = 0;                 // class of traffic: lower ones go first
};

struct UnitAnswer {
  SwarmNode node = 0;
  std::uint64_t want = 0;             // as the caller numbered it
  std::optional<std::uint32_t> unit;  // nothing: the want has waited for kWantWaitMax, or its asker is done
  bool repeats = false;               // a source sends a unit that another node has read, or is reading
};

class Uploads {
 public:
  static constexpr std::chrono::milliseconds kResendAfter{1'000};
  static constexpr std::size_t kCandidates = 128;               // units that are compared for one answer
  static constexpr std::chrono::milliseconds kPlaceMax{2'000};  // for each chunk of a unit

  // `share` outlives this. While all places are taken, an upload that lasts longer than kPlaceMax gives its place to
  // another one, so that a silent asker does not stop the others. Until it has ended, its asker gets no other unit.
  Uploads(std::uint32_t units, UploadShare& share, std::uint64_t chunks_per_unit = 1);
  ~Uploads();
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  void add(std::uint32_t unit);     // this node has the unit from now on
  void add_all();                   // all units, in the order of the version
  void remove(std::uint32_t unit);  // this node has it no longer
  void become_source();             // the directory has named this node

  // Takes a want; its `has` replaces that of earlier wants of the node, so the caller first calls ended() for uploads
  // that the same message ends. False: too many wants wait, though the set counts, or the set has another length than
  // the version. The caller answers this want without a unit.
  bool want(SwarmNode node, std::uint64_t number, UnitWant want, SwarmTime now);
  // `traffic`: only wants of this class get a unit. By default all do, those of a lower class first.
  std::optional<UnitAnswer> next(SwarmTime now, std::optional<std::uint8_t> traffic = {});
  // An upload has ended: the asker has read the unit, or has declined it or failed. The caller bounds how long an
  // upload may take.
  void ended(SwarmNode node, std::uint32_t unit, bool read);
  void forget(SwarmNode node);  // its session has ended, and with it its wants and uploads
  // Returns the time of the next call of next(), if no event comes before.
  std::optional<SwarmTime> due() const;

  bool is_source() const { return source_; }
  std::size_t waiting() const { return waiting_.size(); }
  std::uint64_t sent() const { return sent_units_; }        // uploads that were read
  std::uint64_t beginnings() const { return beginnings_; }  // how often a source began anew

 private:
  struct Asker {
    UnitWant want;                   // `has` with the units of its uploads
    std::size_t uploads = 0;         // not ended yet
    std::size_t waiting = 0;         // wants
    std::size_t aside = 0;           // uploads without a place
    std::size_t useless_below = 0;   // units of order_ below this number are known to be useless for the asker
    std::optional<SwarmTime> again;  // the source may then send a unit again; it looks at no unit before
    std::uint64_t tried = 0;         // the last call of next() that looked at it
    bool done = false;               // its last want lacked no unit
  };
  using Askers = std::map<SwarmNode, Asker>;
  struct Waiting {
    Askers::iterator asker;  // it exists while it has a want that waits
    std::uint64_t number = 0;
    SwarmTime since{};
  };
  struct LastSent {
    SwarmTime at = SwarmTime::min();
    SwarmNode to = 0;
  };
  struct Upload {
    SwarmNode node = 0;
    std::uint32_t unit = 0;
    SwarmTime began{};
    bool aside = false;  // it has given its place to another upload
  };
  using Running = std::vector<Upload>;
  using Queue = std::deque<Waiting>;

  UnitAnswer answer(const Queue::iterator& which, std::optional<std::uint32_t> unit, SwarmTime now);
  Queue::iterator too_old_or_done(SwarmTime now);
  std::optional<std::uint32_t> choose(Asker& asker, SwarmTime now);
  std::optional<std::uint32_t> latest_of_least_sent(Asker& asker) const;
  std::optional<std::uint32_t> once(Asker& asker, SwarmTime now) const;
  void may_send_again();
  void begin_anew();
  bool goes_before(const Asker& one, const Asker& other) const;
  bool may_go_aside() const;
  void set_aside(SwarmTime now);
  void leave_place(const Upload& upload);
  Running::iterator end_upload(Running::iterator upload, bool read);
  void drop_if_idle(Askers::iterator at);
  void drop(Askers::iterator at);

  UploadShare& share_;
  const std::chrono::milliseconds place_max_;
  UnitSet has_;
  std::vector<std::uint32_t> order_;  // the units of has_ as they came
  std::vector<std::uint32_t> sent_;   // how often, by unit; uploads in progress count
  bool source_ = false;
  UnitSet unsent_;                   // units of has_ that were not sent
  std::vector<LastSent> last_sent_;  // of a source, by unit
  Askers askers_;
  Running running_;              // the uploads of all askers, as they began
  Queue waiting_;                // in the order of arrival
  std::deque<SwarmNode> ended_;  // askers with wants that lacked no unit
  std::uint64_t sent_units_ = 0;
  std::uint64_t offers_ = 0;
  std::uint64_t tries_ = 0;
  std::uint64_t beginnings_ = 0;
};

}  // namespace weft
