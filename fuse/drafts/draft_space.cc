#include "fuse/drafts/draft_space.h"

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

}  // namespace

DraftSpace::DraftSpace(DraftTree& tree, std::optional<std::uint64_t> bytes_max) : tree_(tree) {
  const auto disk = disk_space(tree.folder());
  bytes_max_ = bytes_max.value_or(disk ? disk->total / 4 : UINT64_MAX);
}

void DraftSpace::count() {
  const auto begin = Clock::now();
  bytes_ = tree_.bytes();
  counted_ = Clock::now();
  took_ = counted_ - begin;
}

// Nothing is refused by an old count: what was removed or published since may make the space.
int DraftSpace::check(std::uint64_t more) {
  const auto fits = [&] { return bytes_ + growing_ <= bytes_max_ && more <= bytes_max_ - bytes_ - growing_; };
  if (Clock::now() - counted_ > std::max<Clock::duration>(kOld, kPause * took_)) count();
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

int DraftSpace::grow(std::uint64_t bytes, const std::function<int()>& act) {
  if (bytes == 0) return act();
  {
    const std::lock_guard lock(mutex_);
    if (const int failed = check(bytes); failed != 0) return failed;
    growing_ += bytes;
  }
  const int done = act();
  const std::lock_guard lock(mutex_);
  growing_ -= bytes;
  if (done == 0) bytes_ += bytes;
  return done;
}

std::uint64_t DraftSpace::bytes() {
  const std::lock_guard lock(mutex_);
  if (Clock::now() - counted_ > std::max<Clock::duration>(kOld, kPause * took_)) count();
  return bytes_;
}

}  // namespace weft
