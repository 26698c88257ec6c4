// One file that is read ahead in: whether anything of it can be brought in, how far its readers are, and what is on its
// way. Any thread.
//
//   state      what is known of the file
//   fresh      no reader has begun
//   starting   something is missing; as soon as nothing is on its way, the window is set up
//   following  the window goes ahead of the readers (prefetch_window.h)
//   resting    all of it is in memory, or seems to be. Nothing can be brought in, and its readers need the processors
//   looking    goes through the file, to learn whether all of it is in memory
//   over       no descriptor is used any more
//
//   from                  to                    when
//   fresh                 resting | starting    begin(): whether something is missing is guessed from a few pages
//   fresh                 following             told(): a reader began without an open
//   starting              following             nothing is on its way; pages on their way would count as cached
//   resting               looking               it has rested for a while
//   looking               resting | starting    all pages were found in memory | a page was missing
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
  enum class State { fresh, starting, following, resting, looking, over };
  struct Step {
    std::vector<Part> parts;  // each to be brought in, by bring_in()
    Clock::time_point due;    // when to ask again
  };

  // The subject's descriptors are the caller's. They are used until end(), or until leave() is true.
  explicit PrefetchedFile(PrefetchSubject subject);

  Clock::time_point begin(Clock::time_point now);         // somebody opened the file; returns when step() is due
  bool told(std::uint64_t offset, std::uint64_t length);  // somebody reads here; true: step() is due now, and was not
  Step step(Clock::time_point now);                       // what to bring in now
  void bring_in(const Part& part);                        // does nothing once the file is over
  void end();                                             // when it returns, no descriptor is used any more

  // The file's last descriptor is closed, but a mapping of it may be left, whose readers nobody reports. The file is
  // watched on, by a descriptor of its own, as long as they move, and kLeftFor longer. False: end() it. A file whose
  // reads are reported is not watched on.
  static constexpr auto kLeftFor = std::chrono::seconds(10);
  bool leave(Clock::time_point now);
  // The rest is for a file that was left.
  bool rejoin(const PrefetchSubject& subject);  // it is open again; false: it is over, or this is another file
  Clock::time_point left_since() const;         // or when its readers last moved, if that was later
  bool is_over() const { return state() == State::over; }

  State state() const;

 private:
  void enter(State state, Clock::time_point due);
  void start(Clock::time_point now);
  void look_through(Clock::time_point now);
  std::vector<Part> follow(Clock::time_point now);
  Clock::time_point next_look(Clock::time_point now) const;
  bool look_for_jump(Clock::time_point now);
  bool is_used(std::uint64_t wire) const;
  PrefetchWindow::AnyCached any_cached() const;
  bool hold();
  Clock::time_point last_sign() const;
  bool is_left_alone(Clock::time_point now) const;

  // Guards all members below. Callers of private functions hold it. A thread that needs Prefetcher's mutex too takes
  // that one first.
  mutable std::mutex mutex_;
  std::condition_variable idle_;  // working_ is 0
  SubjectPages pages_;
  PrefetchWindow window_;
  State state_ = State::fresh;
  Clock::time_point due_ = Clock::time_point::max();  // of step()

  // Three facts hold in any state, and none of them changes with the state.
  const bool reads_told_;  // every read is told, so the page cache need not be watched for readers
  bool served_ = false;    // a read was told: the kernel keeps the file open while it is mapped
  std::optional<Clock::time_point> left_since_;  // its last descriptor is closed

  std::vector<Part> coming_;
  unsigned working_ = 0;               // threads in bring_in()
  Clock::time_point moved_{};          // when a reader was last seen to move
  std::uint64_t looked_ = 0;           // looking: everything before this is in memory
  Clock::time_point look_began_{};     // looking: when it began
  Clock::time_point jumps_due_{};      // following: when to look for jumps again
  Clock::time_point look_anew_due_{};  // following: when to forget what has left memory
};

}  // namespace weft
