// The gate that paces what this node reads from peers and the origin, and writes to the origin: one for a daemon. It is
// asked before each piece, and answers when the piece may go (pace/pace_line.h has the rule). Any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "base/time_source.h"
#include "pace/pace_line.h"
#include "weft/bytes/traffic.h"
#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

// Since the start, by class of traffic.
struct PaceFigures {
  template <class T, std::size_t N>
  using ByClass = std::array<std::array<T, N>, kTrafficNames.size()>;
  ByClass<std::uint64_t, kPaceEndNames.size()> bytes{};   // of all pieces, held back or not, by their other end
  ByClass<std::uint64_t, kPaceEndNames.size()> pieces{};  // likewise
  ByClass<double, kPaceRateNames.size()> waited_s{};      // by the rate that held pieces back
};

// Returns the part of a read's time that tells the rate of its source; zero if this node held the read back for most of
// the time.
inline Deadline::duration time_of_source(Deadline::duration took, Deadline::duration held) {
  return 2 * held < took ? took - held : Deadline::duration{};
}

// Returns the name of the rate that held back this class longest from `before` to `after`; "": none did.
std::string_view held_most(const PaceFigures& before, const PaceFigures& after, Traffic traffic);

class PaceGate {
 public:
  class Read;
  explicit PaceGate(const TimeSource& time = steady_time()) : time_(time) {}

  // Pieces that wait go by the new rates from now on.
  void set(const PaceRates& rates) WEFT_EXCLUDES(mutex_);
  bool holds(Traffic traffic, PaceEnd end) const WEFT_EXCLUDES(mutex_);
  // Returns the name of the rate that held back a piece of this class within the last second; "": none did.
  std::string_view held_by(Traffic traffic) const WEFT_EXCLUDES(mutex_);
  PaceFigures figures() const WEFT_EXCLUDES(mutex_);

 private:
  struct Counts {
    std::atomic<std::uint64_t> bytes = 0, pieces = 0;
  };
  struct LastHeld {
    PaceRate by = PaceRate::total;
    Deadline at{};
  };
  bool pass(PacedRead& read, std::uint64_t bytes, Deadline until) WEFT_EXCLUDES(mutex_);
  void owe(const PacedRead& read, std::uint64_t bytes) WEFT_EXCLUDES(mutex_);
  void leave(const PacedRead& read) WEFT_EXCLUDES(mutex_);
  void count(const PacedRead& read, std::uint64_t bytes);

  const TimeSource& time_;
  std::atomic<std::uint64_t> reads_ = 0;
  std::array<std::array<Counts, kPaceEndNames.size()>, kTrafficNames.size()> counts_{};
  std::atomic<bool> is_set_ = false;  // some rate is not 0. Otherwise no piece takes the mutex
  mutable Mutex mutex_;
  mutable Condition changed_;  // a piece passed, a read left, or the rates changed
  PaceLine line_ WEFT_GUARDED_BY(mutex_);
  std::array<LastHeld, kTrafficNames.size()> last_held_ WEFT_GUARDED_BY(mutex_){};
  PaceFigures figures_ WEFT_GUARDED_BY(mutex_);  // waited_s alone
};

// One read with its place in the line, for one thread at a time. Its bytes count once they may go.
class PaceGate::Read {
 public:
  // `gate` outlives this. `is_waited_for`: asked before each piece; once it returns true, a reader waits for the bytes,
  // and the class is foreground. May be empty.
  Read(PaceGate& gate, Traffic traffic, PaceEnd end, std::function<bool()> is_waited_for = {})
      : gate_(gate),
        read_{traffic, end, gate.reads_.fetch_add(1, std::memory_order_relaxed), {}},
        is_waited_for_(std::move(is_waited_for)) {}
  ~Read() { gate_.leave(read_); }
  Read(const Read&) = delete;
  Read& operator=(const Read&) = delete;

  bool is_held() const { return gate_.holds(read_.traffic, read_.end); }
  // Returns the size of the next piece, of `left` bytes.
  std::size_t piece(std::size_t left) const {
    return is_held() && left > PaceLine::kPieceMax ? PaceLine::kPieceMax : left;
  }
  // True: the piece may go now, and counts.
  bool may_go(std::uint64_t bytes) { return wait(bytes, Deadline::min()); }
  // Waits for the turn of the piece, at the latest until `until`. False: the piece may not go yet. The read keeps its
  // place for the next call. With 0 bytes it waits until what was owed is paid.
  bool wait(std::uint64_t bytes, Deadline until) {
    const bool may_wait = read_.traffic != Traffic::foreground && gate_.is_set_.load(std::memory_order_relaxed);
    if (may_wait && is_waited_for_ && is_waited_for_()) read_.traffic = Traffic::foreground;
    return gate_.pass(read_, bytes, until);
  }
  // Waits for the turn of the piece as long as `stays`, which is asked every 50 ms, returns no error; else returns that
  // error. Adds the time of the wait to `held`.
  Status take_turn(std::uint64_t bytes, std::chrono::nanoseconds& held, const std::function<Status()>& stays);
  // Counts bytes that have come already. The next pieces pay for them.
  void owe(std::uint64_t bytes) { gate_.owe(read_, bytes); }

 private:
  PaceGate& gate_;
  PacedRead read_;
  const std::function<bool()> is_waited_for_;
};

}  // namespace weft
