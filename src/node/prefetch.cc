#include "node/prefetch.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/page_cache.h"
#include "base/page_use.h"

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr auto kPollReading = 1ms;     // while the reader moves: 2 MiB at 2 GB/s
constexpr auto kReadingLasts = 100ms;  // since it was last seen to move
constexpr auto kPollIdle = 1s;
constexpr int kPausePart = 8;  // after that, the pause is this part of the time since the reader moved
constexpr auto kLookForJumps = 2ms;
constexpr auto kLookAnew = 2s;                 // what has left the page cache since may be touched again
constexpr std::size_t kTensorsLookedAt = 500;  // at once: half a millisecond
constexpr auto kRest = 250ms;                  // of a file that is all in memory, before it is looked through again
constexpr int kLooksApart = 100;  // times what looking through it took: 1.2 ms where 256 MiB are in single pages
constexpr std::uint64_t kLookedThrough = 64U << 20U;  // at once; 0.2 ms where pages are small
constexpr auto kSeemsToRest = 100ms;  // of a file that looks so at a glance, before it is looked through
constexpr unsigned kGlances = 4;
// Each brings in a large page, all of them a whole window. A reader who comes upon a page that is not under way yet
// makes the kernel read ahead, and that in small pages.
constexpr unsigned kReaders = 32;
constexpr std::size_t kComingMax = 2 * kReaders;  // of one file: who jumps about outruns the disk
constexpr std::uint64_t kWithoutWires = std::uint64_t{1} << 62U;

PrefetchShape shape_of(const PrefetchSubject& subject) {
  PrefetchShape shape;
  shape.page = page_bytes();
  shape.leave_out = !page_use_seen();
  if (subject.reads_seen) shape.wire_first = kWithoutWires;
  return shape;
}

struct FdRange {
  int fd = -1;
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  bool operator==(const FdRange&) const = default;
};

std::uint64_t size_of(const PrefetchSubject& subject) {
  return subject.pieces.empty() ? 0 : subject.pieces.back().offset + subject.pieces.back().length;
}

}  // namespace

struct Prefetcher::Watch::State {
  explicit State(PrefetchSubject of)
      : subject(std::move(of)), window(size_of(subject), subject.borders, shape_of(subject)) {}

  // Calls visit(fd, offset, length) for each part of [offset, offset + length).
  template <class Visit>
  void each_part(std::uint64_t offset, std::uint64_t length, Visit visit) const {
    auto piece = std::upper_bound(subject.pieces.begin(), subject.pieces.end(), offset,
                                  [](std::uint64_t at, const FilePiece& one) { return at < one.offset + one.length; });
    for (; length > 0 && piece != subject.pieces.end(); ++piece) {
      const std::uint64_t begin = std::max(offset, piece->offset);
      const std::uint64_t end = std::min(offset + length, piece->offset + piece->length);
      if (begin < end) visit(piece->fd, piece->fd_offset + (begin - piece->offset), end - begin);
      if (end <= offset) return;
      length -= std::min(length, end - offset);
      offset = end;
    }
  }

  bool any_cached(const ByteRange& range) const {
    bool cached = false;
    each_part(range.offset, range.length, [&](int fd, std::uint64_t at, std::uint64_t length) {
      const auto pages = cached ? Result<std::uint64_t>(0U) : cached_pages(fd, at, length);
      cached = cached || (pages.ok() && *pages > 0);
    });
    return cached;
  }

  // Pages from its beginning to its end: a few microseconds, where to look through it takes 0.1 ms a GiB.
  bool seems_cached() const {
    const std::uint64_t first = subject.pieces.empty() ? 0 : subject.pieces.front().offset;
    const std::uint64_t span = size_of(subject) - first;
    bool all = span > 0;
    for (unsigned i = 0; all && i < kGlances; ++i)
      each_part(first + (span - 1) / (kGlances - 1) * i, 1,
                [&](int fd, std::uint64_t at, std::uint64_t) { all = all_cached(fd, at, 1); });
    return all;
  }

  // Under the mutex. Looks on through the file; whoever watches others too asks again at once while it is `looking`.
  void look_through() {
    bool all = true;
    const std::uint64_t length = std::min(kLookedThrough, size_of(subject) - looked);
    each_part(looked, length,
              [&](int fd, std::uint64_t at, std::uint64_t part) { all = all && all_cached(fd, at, part); });
    looked += length;
    resting = all && looked == size_of(subject);
    looking = all && !resting;
    if (!looking) looked = 0;
  }

  // Under the mutex, as wires_seen is.
  bool reached(std::uint64_t wire) {
    if (!page_use_seen()) return any_cached({wire, 1});
    auto seen = wires_seen.find(wire);
    if (seen == wires_seen.end()) {
      std::optional<PageUse> page;
      each_part(wire, 1, [&](int fd, std::uint64_t at, std::uint64_t) {
        if (!is_coming(fd, at)) page = page_use(fd, at);
      });
      if (!page) return false;
      seen = wires_seen.emplace(wire, *page).first;
    }
    if (!used(seen->second)) return false;
    wires_seen.erase(wires_seen.begin(), std::next(seen));
    return true;
  }

  // Under the mutex. What brings a page in has it mapped for a moment: that is no use of it.
  bool is_coming(int fd, std::uint64_t at) const {
    return std::any_of(coming.begin(), coming.end(),
                       [&](const FdRange& range) { return range.fd == fd && range.offset <= at && at < range.end; });
  }

  // Under the mutex. Adds what is missing of the range, cut where large pages of the descriptors are. Of a file that is
  // all in memory nobody is woken.
  void cut(const ByteRange& range, std::vector<FdRange>& parts) const {
    each_part(range.offset, range.length, [&](int fd, std::uint64_t offset, std::uint64_t length) {
      if (all_cached(fd, offset, length)) return;
      for (const std::uint64_t end = offset + length; offset < end; offset = parts.back().end)
        parts.push_back({fd, offset, std::min(end, offset / kLargePage * kLargePage + kLargePage)});
    });
  }

  // Under the mutex. What is to be brought in now: it is in `coming` then. Sets when it is due again.
  std::vector<FdRange> look(Clock::time_point now) {
    due = now + kPollReading;
    if (coming.size() >= kComingMax) return {};
    restart_if_opened_anew();
    const auto is_reached = [this](std::uint64_t wire) { return reached(wire); };
    auto wanted = window.advance(is_reached);
    if (wanted.empty() && !subject.reads_seen && now >= jumps_due && look_for_jump(now))
      wanted = window.advance(is_reached);
    std::vector<FdRange> parts;
    for (const ByteRange& range : wanted) cut(range, parts);
    coming.insert(coming.end(), parts.begin(), parts.end());
    if (!wanted.empty()) moved = now;
    const auto still = now - moved;
    if (still >= kReadingLasts)
      due = subject.reads_seen ? Clock::time_point::max()  // until somebody tells
                               : now + std::min<Clock::duration>(still / kPausePart, kPollIdle);
    return parts;
  }

  // Under the mutex.
  bool look_for_jump(Clock::time_point now) {
    const auto is_cached = [this](const ByteRange& range) { return any_cached(range); };
    const bool jumped = window.jumped(is_cached);
    if (jumped) wires_seen.clear();
    jumps_due = now + kLookForJumps + 20 * (Clock::now() - now);  // a file of many tensors is looked through less often
    if (jumped || !coming.empty() || now - moved < kLookAnew || now < anew_due) return jumped;
    window.look_anew(is_cached, kTensorsLookedAt);
    anew_due = now + kLookAnew;
    return false;
  }

  // Under the mutex. Whoever reads already is not left for who opens the file now.
  void begin(Clock::time_point now) {
    if (window.begun() && now - moved < kReadingLasts) return;
    resting = seems_cached();
    due = resting ? now + kSeemsToRest : now;
    opened_anew = window.begun();
    moved = now;
  }

  // Under the mutex. Who opened it may have read its first pages by now: those behind tell whether it is in memory.
  void restart_if_opened_anew() {
    if (!coming.empty() || !std::exchange(opened_anew, false)) return;
    const std::uint64_t behind = std::min(PrefetchShape().window_first, size_of(subject)) - 1;
    const auto is_cached = [this](const ByteRange& range) { return any_cached(range); };
    if (is_cached({behind, 1})) return;
    window.restart(is_cached);
    wires_seen.clear();
  }

  // Brings the range in, which is in `coming`, unless the watch is over; its end waits for that.
  void bring_in(const FdRange& range) {
    {
      const std::lock_guard lock(mutex);
      if (ended) return;
      ++working;
    }
    weft::bring_in(range.fd, range.offset, range.end - range.offset);
    const std::lock_guard lock(mutex);
    coming.erase(std::find(coming.begin(), coming.end(), range));
    if (--working == 0) idle.notify_all();
  }

  const PrefetchSubject subject;
  std::mutex mutex;  // after Prefetcher::mutex_ where both are held
  std::condition_variable idle;
  bool ended = false;    // guarded by mutex, as are the following
  unsigned working = 0;  // threads in bring_in()
  bool looking = true;   // through the file, so far found in memory up to `looked`
  bool resting = false;  // all of it was
  bool rested = false;   // so it was looked through, and found whole
  bool opened_anew = false;
  std::uint64_t looked = 0;
  std::vector<FdRange> coming;
  PrefetchWindow window;
  std::map<std::uint64_t, PageUse> wires_seen;  // in the page cache, but not yet used
  Clock::time_point moved{};                    // when the reader was last seen to move
  Clock::time_point look_began{};
  Clock::time_point jumps_due{};                     // when jumps are to be looked for again
  Clock::time_point anew_due{};                      // and what is to be forgotten
  Clock::time_point due = Clock::time_point::max();  // when to look again
};

Prefetcher::Watch::~Watch() {
  {
    const std::lock_guard lock(owner_.mutex_);
    std::erase(owner_.watched_, state_);
  }
  std::unique_lock lock(state_->mutex);
  state_->ended = true;
  state_->idle.wait(lock, [this] { return state_->working == 0; });
}

void Prefetcher::Watch::told(std::uint64_t offset, std::uint64_t length) {
  {
    const std::lock_guard lock(state_->mutex);
    const auto now = Clock::now();
    state_->window.told(offset, length);
    state_->moved = now;
    if (state_->due == Clock::time_point::max()) state_->looking = false;  // nobody began it: something is missing
    if (state_->resting || state_->due <= now + kPollReading) return;
    state_->due = now;
  }
  owner_.wake_at({});
}

// Who opens a file that is all in memory wakes nobody, and does not look through it either: its readers need the
// processors, and may be waiting for this one.
void Prefetcher::Watch::begin() {
  Clock::time_point due;
  {
    const std::lock_guard lock(state_->mutex);
    state_->begin(Clock::now());
    due = state_->due;
  }
  owner_.wake_at(due);
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_at({});
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<Prefetcher::Watch> Prefetcher::watch(PrefetchSubject subject) {
  auto state = std::make_shared<Watch::State>(std::move(subject));
  const std::lock_guard lock(mutex_);
  start();
  watched_.push_back(state);
  return std::unique_ptr<Watch>(new Watch(*this, std::move(state)));
}

void Prefetcher::start() {
  if (thread_.joinable()) return;
  timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  if (!timer_.valid()) return;  // too many descriptors, as too many threads: nothing is read ahead until there is one
  readers_ = std::make_unique<ThreadPool>(kReaders);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    timer_ = Fd();
  }
}

// Under the watched one's mutex. Of a file that is all in memory nothing can be brought in: its readers are left in
// peace, who have the processors for themselves.
bool Prefetcher::Watch::rest(State& state, Clock::time_point now) {
  if (!state.resting && !state.looking) return false;
  if (state.looked == 0) state.look_began = now;
  state.look_through();
  if (state.resting) state.rested = true;
  if (!state.resting && !state.looking && std::exchange(state.rested, false))
    state.window.look_anew([&](const ByteRange& range) { return state.any_cached(range); });
  state.due = state.resting ? now + kRest + kLooksApart * (Clock::now() - state.look_began) : now;
  if (!state.looking && !state.resting) state.moved = now;
  return state.looking || state.resting;
}

// What is to be brought in is submitted when the state's mutex is free: where there are no threads, it is done here.
Prefetcher::Clock::time_point Prefetcher::step(const std::shared_ptr<Watch::State>& watched, Clock::time_point now) {
  Watch::State& state = *watched;
  std::vector<FdRange> parts;
  Clock::time_point due;
  {
    const std::lock_guard lock(state.mutex);
    if (state.ended) return Clock::time_point::max();
    if (now < state.due) return state.due;
    if (!Watch::rest(state, now)) parts = state.look(now);
    due = state.due;
  }
  for (const FdRange& part : parts) readers_->submit([watched, part] { watched->bring_in(part); });
  return due;
}

void Prefetcher::wake_at(Clock::time_point when) {
  const std::lock_guard lock(mutex_);
  if (when >= wakes_at_ || !timer_.valid()) return;
  wakes_at_ = when;
  const auto at = std::max(when.time_since_epoch(), std::chrono::nanoseconds(1));  // 0 would disarm it
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at);
  itimerspec expiry{};
  expiry.it_value = {static_cast<time_t>(seconds.count()), static_cast<long>((at - seconds).count())};
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &expiry, nullptr);
}

void Prefetcher::run() {
  for (;;) {
    std::vector<std::shared_ptr<Watch::State>> watched;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      wakes_at_ = Clock::time_point::max();
      watched = watched_;
    }
    auto next = Clock::time_point::max();
    const auto now = Clock::now();
    for (const auto& state : watched) next = std::min(next, step(state, now));
    watched.clear();
    wake_at(next);
    std::uint64_t times = 0;
    static_cast<void>(::read(timer_.get(), &times, sizeof times));
  }
}

}  // namespace weft
