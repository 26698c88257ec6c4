#include "reading/prefetched_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "os/page_cache.h"
#include "weft/run_list.h"

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
constexpr std::size_t kComingMax = 64;  // large pages, two windows: who jumps about outruns the disk
constexpr std::uint64_t kWithoutWires = std::uint64_t{1} << 62U;

PrefetchShape shape_of(const PrefetchSubject& subject) {
  PrefetchShape shape;
  shape.page = page_bytes();
  shape.leave_out = !page_use_seen();
  if (subject.reads_seen) shape.wire_first = kWithoutWires;
  return shape;
}

std::uint64_t size_of(const PrefetchSubject& subject) {
  return subject.pieces.empty() ? 0 : end_of(subject.pieces.back());
}

// The same file by a descriptor of its own, without the locks of this one; invalid where that cannot be had.
Fd open_again(int fd) {
  return Fd(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC));
}

bool is_same_file(int one, int other) {
  const auto a = stat_fd(one, "a file read ahead");
  const auto b = stat_fd(other, "a file read ahead");
  return a.ok() && b.ok() && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

}  // namespace

PrefetchedFile::PrefetchedFile(PrefetchSubject subject)
    : subject_(std::move(subject)), window_(size_of(subject_), subject_.borders, shape_of(subject_)) {}

// Calls visit(fd, offset, length) for each part of [offset, offset + length).
template <class Visit>
void PrefetchedFile::each_part(std::uint64_t offset, std::uint64_t length, Visit visit) const {
  auto piece = run_at(subject_.pieces, offset);
  for (; length > 0 && piece != subject_.pieces.end(); ++piece) {
    const std::uint64_t begin = std::max(offset, piece->offset);
    const std::uint64_t end = std::min(offset + length, piece->offset + piece->length);
    if (begin < end) visit(piece->fd, piece->fd_offset + (begin - piece->offset), end - begin);
    if (end <= offset) return;
    length -= std::min(length, end - offset);
    offset = end;
  }
}

bool PrefetchedFile::any_cached(const Range& range) const {
  bool cached = false;
  each_part(range.offset, range.length, [&](int fd, std::uint64_t at, std::uint64_t length) {
    const auto pages = cached ? Result<std::uint64_t>(0U) : cached_pages(fd, at, length);
    cached = cached || (pages.ok() && *pages > 0);
  });
  return cached;
}

// Pages from its beginning to its end: a few microseconds, where to look through it takes 0.1 ms a GiB.
bool PrefetchedFile::seems_cached() const {
  const std::uint64_t first = subject_.pieces.empty() ? 0 : subject_.pieces.front().offset;
  const std::uint64_t span = size_of(subject_) - first;
  bool all = span > 0;
  for (unsigned i = 0; all && i < kGlances; ++i)
    each_part(first + (span - 1) / (kGlances - 1) * i, 1,
              [&](int fd, std::uint64_t at, std::uint64_t) { all = all_cached(fd, at, 1); });
  return all;
}

// Looks on through the file; whoever watches others too asks again at once while it is `looking_`.
void PrefetchedFile::look_through() {
  bool all = true;
  const std::uint64_t length = std::min(kLookedThrough, size_of(subject_) - looked_);
  each_part(looked_, length,
            [&](int fd, std::uint64_t at, std::uint64_t part) { all = all && all_cached(fd, at, part); });
  looked_ += length;
  resting_ = all && looked_ == size_of(subject_);
  looking_ = all && !resting_;
  if (!looking_) looked_ = 0;
}

// Of a file that is all in memory nothing can be brought in: its readers are left in peace, who have the processors for
// themselves.
bool PrefetchedFile::rest(Clock::time_point now) {
  if (!resting_ && !looking_) return false;
  if (looked_ == 0) look_began_ = now;
  look_through();
  if (resting_) rested_ = true;
  if (!resting_ && !looking_ && std::exchange(rested_, false))
    window_.look_anew([&](const Range& range) { return any_cached(range); });
  due_ = resting_ ? now + kRest + kLooksApart * (Clock::now() - look_began_) : now;
  if (!looking_ && !resting_) moved_ = now;
  return looking_ || resting_;
}

bool PrefetchedFile::reached(std::uint64_t wire) {
  if (!page_use_seen()) return any_cached({wire, 1});
  auto seen = wires_seen_.find(wire);
  if (seen == wires_seen_.end()) {
    std::optional<PageUse> page;
    each_part(wire, 1, [&](int fd, std::uint64_t at, std::uint64_t) {
      if (!is_coming(fd, at)) page = page_use(fd, at);
    });
    if (!page) return false;
    seen = wires_seen_.emplace(wire, *page).first;
  }
  if (!used(seen->second)) return false;
  if (!is_still(seen->second, wire)) {
    wires_seen_.erase(seen);
    return false;
  }
  wires_seen_.erase(wires_seen_.begin(), std::next(seen));
  return true;
}

// A frame may have been given to another file since.
bool PrefetchedFile::is_still(const PageUse& seen, std::uint64_t wire) const {
  std::optional<PageUse> page;
  each_part(wire, 1, [&](int fd, std::uint64_t at, std::uint64_t) { page = page_use(fd, at); });
  return page && page->frame == seen.frame;
}

// What brings a page in has it mapped for a moment: that is no use of it.
bool PrefetchedFile::is_coming(int fd, std::uint64_t at) const {
  return std::any_of(coming_.begin(), coming_.end(),
                     [&](const FdRange& range) { return range.fd == fd && range.offset <= at && at < range.end; });
}

// Adds what is missing of the range, cut where large pages of the descriptors are. Of a file that is all in memory
// nobody is woken.
void PrefetchedFile::cut(const Range& range, std::vector<FdRange>& parts) const {
  each_part(range.offset, range.length, [&](int fd, std::uint64_t offset, std::uint64_t length) {
    if (all_cached(fd, offset, length)) return;
    for (const std::uint64_t end = offset + length; offset < end; offset = parts.back().end)
      parts.push_back({fd, offset, std::min(end, offset / kLargePage * kLargePage + kLargePage)});
  });
}

// What is to be brought in now: it is in `coming_` then. Sets when it is due again.
std::vector<PrefetchedFile::FdRange> PrefetchedFile::look(Clock::time_point now) {
  due_ = now + kPollReading;
  if (coming_.size() >= kComingMax) {
    moved_ = now;
    return {};
  }
  const std::uint64_t reader = window_.reader();
  restart_if_opened_anew();
  const auto is_reached = [this](std::uint64_t wire) { return reached(wire); };
  auto wanted = window_.advance(is_reached);
  if (wanted.empty() && !subject_.reads_seen && now >= jumps_due_ && look_for_jump(now))
    wanted = window_.advance(is_reached);
  if (!wanted.empty()) hold();
  std::vector<FdRange> parts;
  for (const Range& range : wanted) cut(range, parts);
  coming_.insert(coming_.end(), parts.begin(), parts.end());
  if (!wanted.empty() || window_.reader() != reader) moved_ = now;
  const auto still = now - moved_;
  if (still >= kReadingLasts)
    due_ = subject_.reads_seen ? Clock::time_point::max()  // until somebody tells
                               : now + std::min<Clock::duration>(still / kPausePart, kPollIdle);
  return parts;
}

bool PrefetchedFile::look_for_jump(Clock::time_point now) {
  const auto is_cached = [this](const Range& range) { return any_cached(range); };
  const bool jumped = window_.jumped(is_cached);
  if (jumped) wires_seen_.clear();
  jumps_due_ = now + kLookForJumps + 20 * (Clock::now() - now);  // a file of many tensors is looked through less often
  if (jumped || !coming_.empty() || now - moved_ < kLookAnew || now < anew_due_) return jumped;
  window_.look_anew(is_cached, kTensorsLookedAt);
  anew_due_ = now + kLookAnew;
  return false;
}

// Whoever reads already is not left for who opens the file now.
PrefetchedFile::Clock::time_point PrefetchedFile::begin(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const bool is_read = window_.begun() && now - moved_ < kReadingLasts;
  if (!std::exchange(rejoined_, false) && is_read) return due_;
  resting_ = seems_cached();
  due_ = resting_ ? now + kSeemsToRest : now;
  opened_anew_ = window_.begun();
  moved_ = now;
  return due_;
}

// Who opened it may have read its first pages by now: those behind tell whether it is in memory.
void PrefetchedFile::restart_if_opened_anew() {
  if (!coming_.empty() || !std::exchange(opened_anew_, false)) return;
  const std::uint64_t behind = std::min(PrefetchShape().window_first, size_of(subject_)) - 1;
  const auto is_cached = [this](const Range& range) { return any_cached(range); };
  if (is_cached({behind, 1})) return;
  window_.restart(is_cached);
  wires_seen_.clear();
}

bool PrefetchedFile::told(std::uint64_t offset, std::uint64_t length) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  window_.told(offset, length);
  moved_ = now;
  served_ = true;
  if (due_ == Clock::time_point::max()) looking_ = false;  // nobody began it: something is missing
  if (resting_ || due_ <= now + kPollReading) return false;
  due_ = now;
  return true;
}

PrefetchedFile::Step PrefetchedFile::step(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (ended_) return {{}, Clock::time_point::max()};
  if (now < due_) return {{}, due_};
  Step step;
  if (!rest(now)) step.parts = look(now);
  ended_ = left_ && (resting_ || nobody_left(now));
  step.due = ended_ ? Clock::time_point::max() : due_;
  return step;
}

void PrefetchedFile::bring_in(const FdRange& range) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ++working_;
  }
  weft::bring_in(range.fd, range.offset, range.end - range.offset);
  const std::lock_guard lock(mutex_);
  coming_.erase(std::find(coming_.begin(), coming_.end(), range));
  if (--working_ == 0) idle_.notify_all();
}

void PrefetchedFile::end() {
  std::unique_lock lock(mutex_);
  ended_ = true;
  idle_.wait(lock, [this] { return working_ == 0; });
}

// Before anything is brought in: what follows is done by a descriptor that stays when the file is closed.
bool PrefetchedFile::hold() {
  if (held_.valid() || !coming_.empty() || subject_.reads_seen || subject_.pieces.size() != 1) return held_.valid();
  held_ = open_again(subject_.pieces.front().fd);
  if (held_.valid()) subject_.pieces.front().fd = held_.get();
  return held_.valid();
}

// Who mapped it may have closed it before it was looked at first.
bool PrefetchedFile::leave(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const bool was_begun = moved_ != Clock::time_point();
  if (!was_begun || served_ || resting_ || !hold()) return false;
  left_ = now;
  is_left_ = !nobody_left(now);
  return is_left_;
}

bool PrefetchedFile::rejoin(const PrefetchSubject& subject) {
  if (!is_left_) return false;
  const std::lock_guard lock(mutex_);
  if (ended_ || subject.reads_seen || subject.pieces.size() != 1) return false;
  if (!is_same_file(held_.get(), subject.pieces.front().fd)) return false;
  if (size_of(subject) != size_of(subject_) || subject.borders != subject_.borders) return false;
  left_.reset();
  is_left_ = false;
  rejoined_ = true;
  return true;
}

std::optional<PrefetchedFile::Clock::time_point> PrefetchedFile::left() const {
  if (!is_left_) return {};
  const std::lock_guard lock(mutex_);
  return std::max(moved_, *left_);
}

bool PrefetchedFile::is_over() const {
  if (!is_left_) return false;
  const std::lock_guard lock(mutex_);
  return ended_;
}

// Nor is there anything to read where the file is gone from the store.
bool PrefetchedFile::nobody_left(Clock::time_point now) const {
  if (now - std::max(moved_, *left_) >= kLeftFor) return true;
  const auto facts = stat_fd(held_.get(), "a file read ahead");
  return !facts.ok() || facts->st_nlink == 0;
}

}  // namespace weft
