#include "fuse/drafts/draft_space.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/limits.h"
#include "base/log.h"
#include "os/file_ops.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kOld{1};
constexpr int kPause = 10;  // factor: a count is old after this many durations of counting

std::uint64_t reserve_of(const DiskSpace& disk) {
  return std::min(limits::kDraftReserveMax, disk.total / limits::kDraftReservePart);
}

// check() returns this if it must count again before it may refuse.
constexpr int kAskLater = 1;

// The turn among all threads and mounts. The lock ends with this object, or with the process.
class Turn {
 public:
  Turn(std::mutex& threads, int fd) : one_(threads), fd_(fd) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Turn() {
    if (fd_ >= 0) ::flock(fd_, LOCK_UN);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const std::lock_guard<std::mutex> one_;
  const int fd_;
};

// Opens kDraftSpaceFile. It belongs to the folder's owner, whose servers use it too.
Fd open_space(int folder) {
  Fd fd(::openat(folder, kDraftSpaceFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat st {};
  if (!fd.valid())
    log_warning("drafts/{}: {}; drafts_max is exact for this mount alone", kDraftSpaceFile, std::strerror(errno));
  else if (::geteuid() == 0 && ::fstat(folder, &st) == 0)
    static_cast<void>(::fchown(fd.get(), st.st_uid, st.st_gid));
  return fd;
}

}  // namespace

DraftSpace::DraftSpace(DraftTree& tree, std::optional<std::uint64_t> bytes_max)
    : tree_(tree), file_(open_space(tree.folder())) {
  const auto disk = disk_space(tree_.folder());
  bytes_max_ = bytes_max.value_or(disk ? disk->total / 4 : UINT64_MAX);
}

// The value itself has no meaning; only its growth counts.
std::uint64_t DraftSpace::announced() const {
  std::uint64_t bytes = 0;
  const bool read = file_.valid() && ::pread(file_.get(), &bytes, sizeof bytes, 0) == sizeof bytes;
  return read ? bytes : 0;
}

// An announcement is noted once it is done. One noted before this read is part of the count; one noted afterwards adds
// to it.
void DraftSpace::count() {
  const auto begin = Clock::now();
  announced_ = announced();
  bytes_ = tree_.bytes();
  counted_ = Clock::now();
  took_ = counted_ - begin;
}

void DraftSpace::count_if_old() {
  if (Clock::now() - counted_ > std::max<Clock::duration>(kOld, kPause * took_)) count();
}

bool DraftSpace::fits(std::uint64_t more) const {
  const std::uint64_t since = announced() - announced_;
  const std::uint64_t taken = bytes_ + growing_;
  return since <= bytes_max_ && taken <= bytes_max_ - since && more <= bytes_max_ - since - taken;
}

// Counts again before a refusal: removals and publishes may have made space. A size announced during a count may count
// twice.
int DraftSpace::check(std::uint64_t more, const Request& request) {
  count_if_old();
  if (!fits(more)) {
    if (counted_in_turn_ >= request.begin) return -EDQUOT;
    if (!request.in_turn || Clock::now() < counted_ + took_) return kAskLater;
    count();
    counted_in_turn_ = counted_ - took_;
    if (!fits(more)) return -EDQUOT;
  }
  const auto disk = disk_space(tree_.folder());
  if (!disk) return 0;
  const std::uint64_t kept = reserve_of(*disk) + growing_;
  return disk->available > kept && more <= disk->available - kept ? 0 : -ENOSPC;
}

// Requests that need another count wait for it outside of their turn, so that other requests come first.
int DraftSpace::answer(Request request, const std::function<int(const Request&)>& one) {
  while (true) {
    {
      std::optional<Turn> turn;
      if (request.in_turn) turn.emplace(turn_, file_.get());
      if (const int result = one(request); result != kAskLater) return result;
    }
    request.in_turn = true;
    std::unique_lock lock(mutex_);
    const auto next = counted_ + took_;
    lock.unlock();
    std::this_thread::sleep_until(next);
  }
}

int DraftSpace::reserve(std::uint64_t bytes, const Request& request) {
  const std::lock_guard lock(mutex_);
  const int failed = check(bytes, request);
  if (failed == 0) growing_ += bytes;
  return failed;
}

int DraftSpace::admit() {
  return answer({Clock::now(), false}, [this](const Request& request) {
    const std::lock_guard lock(mutex_);
    return check(bytes_max_ == UINT64_MAX ? 0 : 1, request);
  });
}

int DraftSpace::announce(const std::function<std::uint64_t()>& growth, const std::function<int()>& act) {
  return answer({Clock::now(), true}, [&](const Request& request) {
    const std::uint64_t bytes = growth();
    if (bytes == 0) return act();
    if (const int failed = reserve(bytes, request); failed != 0) return failed;
    return grow(bytes, act, [this](std::uint64_t more) {
      const std::uint64_t all = announced() + more;
      if (!file_.valid() || ::pwrite(file_.get(), &all, sizeof all, 0) != sizeof all) bytes_ += more;
    });
  });
}

int DraftSpace::write(std::uint64_t bytes, const std::function<int()>& act) {
  if (bytes == 0) return act();
  const int failed = answer({Clock::now(), false}, [&](const Request& request) { return reserve(bytes, request); });
  return failed != 0 ? failed : grow(bytes, act, [this](std::uint64_t more) { bytes_ += more; });
}

int DraftSpace::grow(std::uint64_t bytes, const std::function<int()>& act,
                     const std::function<void(std::uint64_t)>& note) {
  const int done = act();
  const std::lock_guard lock(mutex_);
  growing_ -= bytes;
  if (done == 0) note(bytes);
  return done;
}

std::uint64_t DraftSpace::bytes() {
  const std::lock_guard lock(mutex_);
  count_if_old();
  return bytes_ + (announced() - announced_);
}

}  // namespace weft
