// A file to read ahead in: whether parts of it are missing, how far its readers are, and which parts are in flight. Any
// thread.
//
//   state      meaning
//   fresh      no reader has begun
//   starting   pages are missing; as soon as no part is in flight, the window is set up
//   following  the window goes ahead of the readers (prefetch_window.h)
//   resting    all of the file is in memory, or seems to be: nothing to bring in, and readers need the processors
//   scanning   scans the file, to find out whether all of it is in memory
//   over       all descriptors are out of use
//
//   from                  to                    when
//   fresh                 resting | starting    begin(): guesses from a few pages whether any page is missing
//   fresh                 following             told(): a reader began without an open
//   starting              following             no part is in flight; pages in flight would count as cached
//   resting               scanning              it has rested for a while
//   scanning              resting | starting    all pages were found in memory | a page was missing
//   any but over          resting | starting    begin(), unless a reader moved lately: it has precedence
//   any but over          fresh                 rejoin()
//   any                   over                  end()
//   any                   over                  the file was left, and rests, is small and all in memory, or no reader
//                                               moves for kLeftFor
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "reading/prefetch_subject.h"
#include "reading/prefetch_window.h"
#include "reading/subject_pages.h"

namespace weft {

class PrefetchedFile {
 public:
  using Clock = std::chrono::steady_clock;
  using Part = SubjectPages::Part;
  enum class State { fresh, starting, following, resting, scanning, over };
  struct Step {
    std::vector<Part> parts;  // pass each to bring_in()
    Clock::time_point due;    // when to call step() again
  };

  // The caller owns the subject's descriptors. They are used until end(), or until leave() returns true.
  explicit PrefetchedFile(PrefetchSubject subject);

  Clock::time_point begin(Clock::time_point now);         // a reader opened the file; returns when step() is due
  bool told(std::uint64_t offset, std::uint64_t length);  // a reader reads here; true: step() became due by this
  Step step(Clock::time_point now);                       // returns the parts to bring in now
  void bring_in(const Part& part);                        // does nothing once the file is over
  void end();                                             // after it returns, no descriptor is used

  // Call it when the file's last descriptor is closed. A mapping may remain, with readers that nobody reports. So the
  // file stays watched through a descriptor of its own, while they move and kLeftFor longer. Returns false
  // if the caller must call end(). A file whose reads are reported does not stay watched.
  static constexpr auto kLeftFor = std::chrono::seconds(10);
  bool leave(Clock::time_point now);
  // The remaining members are for a file after leave().
  bool rejoin(const PrefetchSubject& subject);  // the file is open again; false: over, or `subject` is another file
  Clock::time_point left_since() const;         // or when its readers last moved, if later
  bool is_over() const { return state() == State::over; }

  State state() const;

 private:
  void enter(State state, Clock::time_point due);
  void start(Clock::time_point now);
  void scan(Clock::time_point now);
  std::vector<Part> follow(Clock::time_point now);
  Clock::time_point next_scan(Clock::time_point now) const;
  bool scan_for_jump(Clock::time_point now);
  bool is_used(std::uint64_t wire) const;
  PrefetchWindow::AnyCached any_cached() const;
  bool hold();
  Clock::time_point last_sign() const;
  bool is_left_alone(Clock::time_point now) const;

  // Guards all members below. Callers of private functions hold it. A thread that needs Prefetcher's mutex too locks
  // that mutex first.
  mutable std::mutex mutex_;
  std::condition_variable idle_;  // signalled when working_ is 0
  SubjectPages pages_;
  PrefetchWindow window_;
  State state_ = State::fresh;
  Clock::time_point due_ = Clock::time_point::max();  // when step() is due

  // These three members do not depend on the state.
  const bool reads_told_;  // every read is reported, so the page cache need not be watched for readers
  bool served_ = false;    // a read was reported: the kernel keeps such a file open while it is mapped
  std::optional<Clock::time_point> left_since_;  // when its last descriptor was closed

  std::vector<Part> coming_;
  unsigned working_ = 0;                // threads in bring_in()
  Clock::time_point moved_{};           // when a reader was last seen to move
  std::uint64_t scanned_ = 0;           // scanning: everything before this is in memory
  Clock::time_point scan_began_{};      // scanning: when it began
  Clock::time_point jumps_due_{};       // following: when to look for jumps again
  Clock::time_point scan_again_due_{};  // following: when to call scan_again() again
};

}  // namespace weft
