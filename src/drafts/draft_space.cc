#include "drafts/draft_space.h"

#include <fcntl.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "os/entries.h"
#include "os/file_lock.h"
#include "os/file_ops.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kOld{1};
constexpr int kDefaultPart = 4;  // of the file system
constexpr int kOldFactor = 10;   // factor: a count is old after this many durations of counting
constexpr int kCountsMax = 8;    // for one request

std::uint64_t reserve_of(const DiskSpace& disk) {
  return std::min(limits::kDraftReserveMax, disk.total / limits::kDraftReservePart);
}

// The turn among all threads and mounts. The lock ends with this object, or with the process.
class Turn {
 public:
  Turn(std::mutex& threads, int fd) : one_(threads), fd_(fd) {
    if (fd_ >= 0) static_cast<void>(lock_fd(fd_, LockKind::exclusive, LockWait::yes, kDraftSpaceFile));
  }
  ~Turn() {
    if (fd_ >= 0) static_cast<void>(unlock_bytes(fd_, {}, kDraftSpaceFile));
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const std::lock_guard<std::mutex> one_;
  const int fd_;
};

// Opens kDraftSpaceFile. It belongs to the folder's owner, whose servers use it too.
Fd open_space(int folder) {
  auto fd = open_at(folder, kDraftSpaceFile, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
  if (!fd.ok()) log_warning("drafts/{}; drafts_max is exact for this mount alone", fd.error().message);
  if (!fd.ok()) return {};
  give_as(fd->get(), folder);
  return std::move(fd).value();
}

}  // namespace

DraftSpace::DraftSpace(DraftTree& tree, std::optional<std::uint64_t> bytes_max, std::optional<std::uint64_t> inodes_max)
    : tree_(tree),
      inodes_([this] { return UserShares::bound_of(inodes_max_); }, own_user()),
      file_(open_space(tree.folder())) {
  const auto disk = disk_space(tree_.folder());
  bytes_max_ = bytes_max.value_or(disk ? disk->total / kDefaultPart : UINT64_MAX);
  inodes_max_ = inodes_max.value_or(disk && disk->inodes != 0 ? disk->inodes / kDefaultPart : UINT64_MAX);
}

// The value itself has no meaning; only its growth counts.
std::uint64_t DraftSpace::announced() const {
  std::uint64_t bytes = 0;
  const auto read = read_some(file_.get(), 0, std::as_writable_bytes(std::span(&bytes, 1)), kDraftSpaceFile);
  return read.ok() && *read == sizeof bytes ? bytes : 0;
}

// Walks without the lock. An announcement is noted once it is done: one noted before the walk is part of the count. The
// turn after the walk waits for an announcement of another mount that is done and not noted yet.
void DraftSpace::count(std::unique_lock<std::mutex>& lock) {
  counting_ = true;
  const auto begin = Clock::now();
  const std::uint64_t before = grown();
  lock.unlock();
  DraftUse use = tree_.use();
  std::uint64_t noted = 0;
  {
    const Turn turn(turn_, file_.get());
    noted = announced();
  }
  lock.lock();
  made_in_ = std::exchange(made_, {});
  for (const auto& [user, count] : made_in_) use.inodes[user] += count;
  inodes_.recount(use.inodes);
  bytes_ = use.bytes;
  grown_before_ = before;
  grown_after_ = noted + written_ + growing_;
  begin_ = begin;
  end_ = Clock::now();
  counting_ = false;
  counted_.notify_all();
}

void DraftSpace::count_if_old() {
  std::unique_lock lock(mutex_);
  const bool is_first = begin_ == Clock::time_point{};
  if (is_first) counted_.wait(lock, [this] { return !counting_; });
  const auto kept = std::max<Clock::duration>(kOld, kOldFactor * (end_ - begin_));
  if (!counting_ && Clock::now() - end_ > kept) count(lock);
}

// Returns once a count that began after `time` has ended.
void DraftSpace::count_since(Clock::time_point time) {
  std::unique_lock lock(mutex_);
  while (begin_ < time) {
    const auto next = end_ + (end_ - begin_);
    if (counting_)
      counted_.wait(lock);
    else if (Clock::now() < next)
      counted_.wait_until(lock, next);
    else
      count(lock);
  }
}

bool DraftSpace::fits(std::uint64_t more, std::uint64_t taken, std::uint64_t since) const {
  return since <= bytes_max_ && taken <= bytes_max_ - since && more <= bytes_max_ - since - taken;
}

// Removals and publishes may have made space, so only a later count refuses.
DraftSpace::Verdict DraftSpace::judge(bool fits, bool is_sure, int counts) {
  if (fits) return Status{};
  if (counts > 0 && (is_sure || counts >= kCountsMax)) return over_quota("drafts");
  return std::nullopt;
}

DraftSpace::Verdict DraftSpace::check(std::uint64_t more, int counts) const {
  const auto since = static_cast<std::int64_t>(grown() - grown_after_);  // less than 0: acts run that began before
  const bool may_fit = fits(more, bytes_, static_cast<std::uint64_t>(std::max<std::int64_t>(0, since)));
  Verdict verdict = judge(fits(more, bytes_ + growing_, grown() - grown_before_), !may_fit, counts);
  return verdict && verdict->ok() ? check_disk(more) : verdict;
}

Status DraftSpace::check_disk(std::uint64_t more) const {
  const auto disk = disk_space(tree_.folder());
  if (!disk) return {};
  const std::uint64_t kept = reserve_of(*disk) + growing_;
  if (disk->available > kept && more <= disk->available - kept) return {};
  return Error{Errc::no_space, "drafts: the disk is full"};
}

Status DraftSpace::answer(const std::function<Verdict(int counts)>& one) {
  count_if_old();
  for (int counts = 0;; ++counts) {
    if (Verdict verdict = one(counts)) return *std::move(verdict);
    count_since(Clock::now());
  }
}

DraftSpace::Verdict DraftSpace::reserve(std::uint64_t bytes, int counts) {
  const std::lock_guard lock(mutex_);
  Verdict verdict = check(bytes, counts);
  if (verdict && verdict->ok()) growing_ += bytes;
  return verdict;
}

Status DraftSpace::admit() {
  return answer([this](int counts) {
    const std::lock_guard lock(mutex_);
    return check(bytes_max_ == UINT64_MAX ? 0 : 1, counts);
  });
}

Status DraftSpace::admit_inode(uid_t user) {
  return answer([this, user](int counts) {
    const std::lock_guard lock(mutex_);
    const bool added = inodes_.add(user);
    if (added && counting_) ++made_[user];
    return judge(added, !made_in_.contains(user), counts);
  });
}

Status DraftSpace::announce(const std::function<std::uint64_t()>& growth, const std::function<Status()>& act) {
  return answer([&](int counts) -> Verdict {
    const Turn turn(turn_, file_.get());
    const std::uint64_t bytes = growth();
    if (bytes == 0) return act();
    if (Verdict reserved = reserve(bytes, counts); !reserved || !reserved->ok()) return reserved;
    return grow(bytes, act, [this](std::uint64_t more) {
      const std::uint64_t all = announced() + more;
      if (!write_exact(file_.get(), 0, std::as_bytes(std::span(&all, 1)), kDraftSpaceFile).ok()) written_ += more;
    });
  });
}

Status DraftSpace::write(std::uint64_t bytes, const std::function<Status()>& act) {
  if (bytes == 0) return act();
  WEFT_CHECK(answer([&](int counts) { return reserve(bytes, counts); }));
  return grow(bytes, act, [this](std::uint64_t more) { written_ += more; });
}

Status DraftSpace::grow(std::uint64_t bytes, const std::function<Status()>& act,
                        const std::function<void(std::uint64_t)>& note) {
  Status done = act();
  const std::lock_guard lock(mutex_);
  growing_ -= bytes;
  if (done.ok()) note(bytes);
  return done;
}

std::uint64_t DraftSpace::bytes() {
  count_if_old();
  const std::lock_guard lock(mutex_);
  return bytes_ + (grown() - grown_before_);
}

}  // namespace weft
