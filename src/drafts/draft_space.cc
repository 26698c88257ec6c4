#include "drafts/draft_space.h"

#include <fcntl.h>

#include <algorithm>
#include <span>
#include <thread>

#include "base/limits.h"
#include "base/log.h"
#include "os/entries.h"
#include "os/file_lock.h"
#include "os/file_ops.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kOld{1};
constexpr int kDefaultPart = 4;  // of the file system
constexpr int kPause = 10;       // factor: a count is old after this many durations of counting

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

// An announcement is noted once it is done. One noted before this read is part of the count; one noted afterwards adds
// to it.
void DraftSpace::count() {
  const auto begin = Clock::now();
  announced_ = announced();
  const DraftUse use = tree_.use();
  bytes_ = use.bytes;
  inodes_.recount(use.inodes);
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
DraftSpace::Verdict DraftSpace::judge(const std::function<bool()>& fits, const Request& request) {
  count_if_old();
  if (fits()) return Status{};
  if (counted_in_turn_ >= request.begin) return over_quota("drafts");
  if (!request.in_turn || Clock::now() < counted_ + took_) return std::nullopt;
  count();
  counted_in_turn_ = counted_ - took_;
  return fits() ? Status{} : over_quota("drafts");
}

DraftSpace::Verdict DraftSpace::check(std::uint64_t more, const Request& request) {
  Verdict verdict = judge([this, more] { return fits(more); }, request);
  return verdict && verdict->ok() ? check_disk(more) : verdict;
}

Status DraftSpace::check_disk(std::uint64_t more) const {
  const auto disk = disk_space(tree_.folder());
  if (!disk) return {};
  const std::uint64_t kept = reserve_of(*disk) + growing_;
  if (disk->available > kept && more <= disk->available - kept) return {};
  return Error{Errc::no_space, "drafts: the disk is full"};
}

// Requests that need another count wait for it outside of their turn, so that other requests come first.
Status DraftSpace::answer(Request request, const std::function<Verdict(const Request&)>& one) {
  while (true) {
    {
      std::optional<Turn> turn;
      if (request.in_turn) turn.emplace(turn_, file_.get());
      if (Verdict verdict = one(request)) return *std::move(verdict);
    }
    request.in_turn = true;
    std::unique_lock lock(mutex_);
    const auto next = counted_ + took_;
    lock.unlock();
    std::this_thread::sleep_until(next);
  }
}

DraftSpace::Verdict DraftSpace::reserve(std::uint64_t bytes, const Request& request) {
  const std::lock_guard lock(mutex_);
  Verdict verdict = check(bytes, request);
  if (verdict && verdict->ok()) growing_ += bytes;
  return verdict;
}

Status DraftSpace::admit() {
  return answer({Clock::now(), false}, [this](const Request& request) {
    const std::lock_guard lock(mutex_);
    return check(bytes_max_ == UINT64_MAX ? 0 : 1, request);
  });
}

Status DraftSpace::admit_inode(uid_t user) {
  return answer({Clock::now(), false}, [this, user](const Request& request) {
    const std::lock_guard lock(mutex_);
    return judge([this, user] { return inodes_.add(user); }, request);
  });
}

Status DraftSpace::announce(const std::function<std::uint64_t()>& growth, const std::function<Status()>& act) {
  return answer({Clock::now(), true}, [&](const Request& request) -> Verdict {
    const std::uint64_t bytes = growth();
    if (bytes == 0) return act();
    if (Verdict reserved = reserve(bytes, request); !reserved || !reserved->ok()) return reserved;
    return grow(bytes, act, [this](std::uint64_t more) {
      const std::uint64_t all = announced() + more;
      if (!write_exact(file_.get(), 0, std::as_bytes(std::span(&all, 1)), kDraftSpaceFile).ok()) bytes_ += more;
    });
  });
}

Status DraftSpace::write(std::uint64_t bytes, const std::function<Status()>& act) {
  if (bytes == 0) return act();
  WEFT_CHECK(answer({Clock::now(), false}, [&](const Request& request) { return reserve(bytes, request); }));
  return grow(bytes, act, [this](std::uint64_t more) { bytes_ += more; });
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
  const std::lock_guard lock(mutex_);
  count_if_old();
  return bytes_ + (announced() - announced_);
}

}  // namespace weft
