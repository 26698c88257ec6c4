// One file that is read ahead in: how far its readers are by what they tell or by its pages (prefetch_window.h), and
// what is coming. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "os/page_use.h"
#include "os/sys.h"
#include "reading/prefetch_subject.h"
#include "reading/prefetch_window.h"

namespace weft {

class PrefetchedFile {
 public:
  using Clock = std::chrono::steady_clock;
  struct FdRange {
    int fd = -1;
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    bool operator==(const FdRange&) const = default;
  };
  struct Step {
    std::vector<FdRange> parts;  // each to be brought in, by bring_in()
    Clock::time_point due;       // when to ask again
  };

  // Descriptors are the caller's, and used until end(), or until leave() is true. Begins with begin() or told().
  explicit PrefetchedFile(PrefetchSubject subject);

  Clock::time_point begin(Clock::time_point now);         // somebody opened it; when it is due
  bool told(std::uint64_t offset, std::uint64_t length);  // somebody reads here; true: it is due now, as it was not
  Step step(Clock::time_point now);                       // what to bring in now
  void bring_in(const FdRange& range);                    // unless the watch is over
  void end();                                             // when it has returned no descriptor is used any more

  // Its last descriptor is closed, but a mapping may be left, whose readers nobody reports: it is watched on, by a
  // descriptor of its own, as long as they move, and kLeftFor more. False: end() it. Only where reads are not seen.
  static constexpr auto kLeftFor = std::chrono::seconds(10);
  bool leave(Clock::time_point now);
  bool rejoin(const PrefetchSubject& subject);    // false: it was not left, is over, or is another file
  std::optional<Clock::time_point> left() const;  // when it was left, or its readers last moved
  bool is_over() const;                           // it was left, and its readers have ended

 private:
  template <class Visit>
  void each_part(std::uint64_t offset, std::uint64_t length, Visit visit) const;
  bool any_cached(const Range& range) const;
  bool seems_cached() const;
  void look_through();
  bool rest(Clock::time_point now);
  bool reached(std::uint64_t wire);
  bool is_still(const PageUse& seen, std::uint64_t wire) const;
  bool is_coming(int fd, std::uint64_t at) const;
  void cut(const Range& range, std::vector<FdRange>& parts) const;
  std::vector<FdRange> look(Clock::time_point now);
  bool look_for_jump(Clock::time_point now);
  void restart_if_opened_anew();
  bool hold();
  bool nobody_left(Clock::time_point now) const;

  // Of all that follows, and held where private functions are called. After Prefetcher's where both are held.
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  PrefetchSubject subject_;
  Fd held_;                                // subject_'s only descriptor, once it is valid
  std::optional<Clock::time_point> left_;  // since when it is closed, and watched on
  std::atomic<bool> is_left_ = false;  // changes under Prefetcher's mutex: so others need not be locked to be passed
  bool rejoined_ = false;              // and not begun yet
  bool served_ = false;                // its reads are told after all, so no mapping outlives its last close
  bool ended_ = false;
  unsigned working_ = 0;  // threads in bring_in()
  bool looking_ = true;   // through the file, so far found in memory up to `looked_`
  bool resting_ = false;  // all of it was
  bool rested_ = false;   // so it was looked through, and found whole
  bool opened_anew_ = false;
  std::uint64_t looked_ = 0;
  std::vector<FdRange> coming_;
  PrefetchWindow window_;
  std::map<std::uint64_t, PageUse> wires_seen_;  // in the page cache, but not yet used
  Clock::time_point moved_{};                    // when the reader was last seen to move
  Clock::time_point look_began_{};
  Clock::time_point jumps_due_{};                     // when jumps are to be looked for again
  Clock::time_point anew_due_{};                      // and what is to be forgotten
  Clock::time_point due_ = Clock::time_point::max();  // when to look again
};

}  // namespace weft
