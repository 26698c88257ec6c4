#include "fuse/drafts/draft_space.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/limits.h"
#include "os/file_ops.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kOld{1};
constexpr int kPause = 10;  // times as long as counting takes

std::uint64_t reserve_of(const DiskSpace& disk) {
  return std::min(limits::kDraftReserveMax, disk.total / limits::kDraftReservePart);
}

// The lock ends with this, and with the process.
class Turn {
 public:
  explicit Turn(int fd) : fd_(fd) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Turn() {
    if (fd_ >= 0) ::flock(fd_, LOCK_UN);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const int fd_;
};

}  // namespace

DraftSpace::DraftSpace(DraftTree& tree, std::optional<std::uint64_t> bytes_max)
    : tree_(tree),
      file_(::openat(tree.folder(), kDraftSpaceFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)) {
  const auto disk = disk_space(tree_.folder());
  bytes_max_ = bytes_max.value_or(disk ? disk->total / 4 : UINT64_MAX);
}

// Whatever the file holds: what counts is by how much it grows.
std::uint64_t DraftSpace::announced() const {
  std::uint64_t bytes = 0;
  const bool read = file_.valid() && ::pread(file_.get(), &bytes, sizeof bytes, 0) == sizeof bytes;
  return read ? bytes : 0;
}

// An announcement is noted once it is done: one that is noted before this reads it is counted, one that is noted
// afterwards adds to it.
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

// Nothing is refused by an old count: what was removed or published since may make the space.
int DraftSpace::check(std::uint64_t more) {
  const auto fits = [&] {
    const std::uint64_t since = announced() - announced_;
    const std::uint64_t taken = bytes_ + growing_;
    return since <= bytes_max_ && taken <= bytes_max_ - since && more <= bytes_max_ - since - taken;
  };
  count_if_old();
  if (!fits()) count();
  if (!fits()) return -EDQUOT;
  const auto disk = disk_space(tree_.folder());
  if (!disk) return 0;
  const std::uint64_t kept = reserve_of(*disk) + growing_;
  return disk->available > kept && more <= disk->available - kept ? 0 : -ENOSPC;
}

int DraftSpace::admit() {
  const std::lock_guard lock(mutex_);
  return check(bytes_max_ == UINT64_MAX ? 0 : 1);
}

int DraftSpace::announce(const std::function<std::uint64_t()>& growth, const std::function<int()>& act) {
  const std::lock_guard one(announcing_);
  const Turn turn(file_.get());
  return grow(growth(), act, [this](std::uint64_t more) {
    const std::uint64_t all = announced() + more;
    if (!file_.valid() || ::pwrite(file_.get(), &all, sizeof all, 0) != sizeof all) bytes_ += more;
  });
}

int DraftSpace::write(std::uint64_t bytes, const std::function<int()>& act) {
  return grow(bytes, act, [this](std::uint64_t more) { bytes_ += more; });
}

int DraftSpace::grow(std::uint64_t bytes, const std::function<int()>& act,
                     const std::function<void(std::uint64_t)>& note) {
  if (bytes == 0) return act();
  {
    const std::lock_guard lock(mutex_);
    if (const int failed = check(bytes); failed != 0) return failed;
    growing_ += bytes;
  }
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
