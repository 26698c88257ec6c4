#include "reading/prefetched_file.h"

#include <algorithm>
#include <utility>

#include "os/page_cache.h"
#include "os/page_use.h"

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr auto kPollReading = 1ms;     // while the reader moves: 2 MiB at 2 GB/s
constexpr auto kReadingLasts = 100ms;  // a reader counts as moving for so long after its last move
constexpr auto kPollIdle = 1s;
constexpr int kPausePart = 8;  // afterwards, the pause is this part of the time since the last move
constexpr auto kJumpScanPause = 2ms;
constexpr auto kScanAgain = 2s;                 // interval of scan_again()
constexpr std::size_t kTensorsScanned = 500;    // in one step, which takes half a millisecond
constexpr auto kSeemsToRest = 100ms;            // until a file that seems to be all in memory is scanned
constexpr auto kRest = 250ms;                   // pause between two scans of a file in memory
constexpr int kScansApart = 100;                // plus 100 times the scan itself: 1.2 ms for 256 MiB in small pages
constexpr std::uint64_t kScanned = 64U << 20U;  // scanned in one step: 0.2 ms for small pages
constexpr std::size_t kComingMax = 64;          // large pages, two windows: a reader with many jumps outruns the disk
constexpr std::uint64_t kWithoutWires = std::uint64_t{1} << 62U;

PrefetchShape shape_for(bool reads_told) {
  PrefetchShape shape;
  shape.page = page_bytes();
  if (reads_told) shape.wire_first = kWithoutWires;
  return shape;
}

}  // namespace

PrefetchedFile::PrefetchedFile(PrefetchSubject subject)
    : pages_(std::move(subject.pieces)),
      window_(pages_.size(), std::move(subject.borders), shape_for(subject.reads_seen)),
      reads_told_(subject.reads_seen) {}

PrefetchWindow::AnyCached PrefetchedFile::any_cached() const {
  return [this](const Range& range) { return pages_.any_cached(range); };
}

PrefetchedFile::State PrefetchedFile::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void PrefetchedFile::enter(State state, Clock::time_point due) {
  state_ = state;
  due_ = due;
}

// Runs in the opener's request, so it only guesses whether all of the file is in memory.
PrefetchedFile::Clock::time_point PrefetchedFile::begin(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const bool is_read = window_.begun() && now - moved_ < kReadingLasts;
  if (state_ == State::over || (state_ != State::fresh && is_read)) return due_;
  moved_ = now;
  if (pages_.seem_cached())
    enter(State::resting, now + kSeemsToRest);
  else
    enter(State::starting, now);
  return due_;
}

bool PrefetchedFile::told(std::uint64_t offset, std::uint64_t length) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  window_.told(offset, length);
  moved_ = now;
  served_ = true;
  if (state_ == State::fresh) state_ = State::following;
  if (state_ == State::resting || due_ <= now + kPollReading) return false;
  due_ = now;
  return true;
}

PrefetchedFile::Step PrefetchedFile::step(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (now < due_ || state_ == State::over) return {{}, due_};
  Step step;
  if (state_ == State::resting || state_ == State::scanning) scan(now);
  if (state_ == State::starting) start(now);
  if (state_ == State::following) step.parts = follow(now);
  if (left_since_ && (state_ == State::resting || is_left_alone(now))) enter(State::over, Clock::time_point::max());
  step.due = due_;
  return step;
}

// Scans a part of the file in each step. The next step is due at once, so that other files have their turn between.
void PrefetchedFile::scan(Clock::time_point now) {
  if (state_ == State::resting) {
    scanned_ = 0;
    scan_began_ = now;
  }
  const std::uint64_t length = std::min(kScanned, pages_.size() - scanned_);
  if (!pages_.all_cached({scanned_, length})) return enter(State::starting, now);
  scanned_ += length;
  if (scanned_ < pages_.size()) return enter(State::scanning, now);
  enter(State::resting, now + kRest + kScansApart * (Clock::now() - scan_began_));
}

// The opener may have read the first pages already. So the last page of the first window decides: if it is cached, the
// window goes on where it is, else it restarts at the file's beginning.
void PrefetchedFile::start(Clock::time_point now) {
  due_ = now + kPollReading;
  if (!coming_.empty()) return;
  const std::uint64_t behind = std::min(PrefetchShape().window_first, pages_.size()) - 1;
  if (pages_.any_cached({behind, 1}))
    window_.scan_again(any_cached());
  else
    window_.restart(any_cached());
  moved_ = now;
  enter(State::following, now);
}

// Returns the parts to bring in now, after adding them to coming_.
std::vector<PrefetchedFile::Part> PrefetchedFile::follow(Clock::time_point now) {
  due_ = now + kPollReading;
  if (coming_.size() >= kComingMax) {
    moved_ = now;
    return {};
  }
  const std::uint64_t reader = window_.reader();
  const auto is_used_now = [this](std::uint64_t wire) { return is_used(wire); };
  auto wanted = window_.advance(is_used_now);
  if (!wanted && !reads_told_ && now >= jumps_due_ && scan_for_jump(now)) wanted = window_.advance(is_used_now);
  std::vector<Part> parts;
  if (wanted) {
    hold();
    pages_.add_missing(*wanted, parts);
  }
  coming_.insert(coming_.end(), parts.begin(), parts.end());
  if (wanted || window_.reader() != reader) moved_ = now;
  due_ = next_scan(now);
  return parts;
}

// True if a reader used the page of a wire. bring_in() maps a page for a moment, so pages in coming_ do not count.
bool PrefetchedFile::is_used(std::uint64_t wire) const {
  const auto page = pages_.page_at(wire);
  if (!page) return false;
  const bool is_coming = std::ranges::any_of(coming_, [&page](const Part& part) {
    return part.fd == page->fd && part.offset <= page->offset && page->offset < part.end;
  });
  return !is_coming && page_used(page->fd, page->offset);
}

PrefetchedFile::Clock::time_point PrefetchedFile::next_scan(Clock::time_point now) const {
  const auto still = now - moved_;
  if (still < kReadingLasts) return now + kPollReading;
  if (reads_told_) return Clock::time_point::max();  // until told()
  return now + std::min<Clock::duration>(still / kPausePart, kPollIdle);
}

// A file of many tensors takes longer to check, and is checked less often.
bool PrefetchedFile::scan_for_jump(Clock::time_point now) {
  const bool jumped = window_.jumped(any_cached());
  jumps_due_ = now + kJumpScanPause + 20 * (Clock::now() - now);
  if (jumped || !coming_.empty() || now - moved_ < kScanAgain || now < scan_again_due_) return jumped;
  window_.scan_again(any_cached(), kTensorsScanned);
  scan_again_due_ = now + kScanAgain;
  return false;
}

void PrefetchedFile::bring_in(const Part& part) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::over) return;
    ++working_;
  }
  weft::bring_in(part.fd, part.offset, part.end - part.offset);
  const std::lock_guard lock(mutex_);
  coming_.erase(std::find(coming_.begin(), coming_.end(), part));
  if (--working_ == 0) idle_.notify_all();
}

void PrefetchedFile::end() {
  std::unique_lock lock(mutex_);
  enter(State::over, Clock::time_point::max());
  idle_.wait(lock, [this] { return working_ == 0; });
}

// Opens the file again for the prefetcher. Parts in flight use the caller's descriptor, so the switch is possible only
// while none is in flight.
bool PrefetchedFile::hold() {
  if (pages_.held() || reads_told_ || !coming_.empty()) return pages_.held();
  return pages_.hold();
}

// Calls hold() too: a loader that maps a file may have closed it before the first step.
bool PrefetchedFile::leave(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::fresh || state_ == State::resting || served_ || !hold()) return false;
  left_since_ = now;
  return !is_left_alone(now);
}

bool PrefetchedFile::rejoin(const PrefetchSubject& subject) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::over || subject.reads_seen) return false;
  if (!pages_.held_is(subject.pieces) || subject.borders != window_.borders()) return false;
  left_since_.reset();
  enter(State::fresh, Clock::time_point::max());
  return true;
}

PrefetchedFile::Clock::time_point PrefetchedFile::left_since() const {
  const std::lock_guard lock(mutex_);
  return last_sign();
}

PrefetchedFile::Clock::time_point PrefetchedFile::last_sign() const {
  return std::max(moved_, left_since_.value_or(moved_));
}

// True if read-ahead is of no more use. A file that was deleted from the store is never opened again and has few
// readers.
bool PrefetchedFile::is_left_alone(Clock::time_point now) const {
  if (now - last_sign() >= kLeftFor || pages_.held_is_deleted()) return true;
  // Nothing of a small file is left to bring in: its reader was faster than the first step.
  return now - moved_ >= kReadingLasts && pages_.size() <= kScanned && pages_.all_cached({0, pages_.size()});
}

}  // namespace weft
