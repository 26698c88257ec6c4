#include "drafts/pull_area.h"

#include <fcntl.h>

#include "base/log.h"
#include "os/file_lock.h"
#include "os/file_ops.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr mode_t kPrivate = 0700;

Result<Fd> open_lock(const SafePath& path) {
  return open_file(path / "lock", O_RDWR | O_CREAT, 0600);
}

// True if this lock file is still the one at its path. The directory may have been removed between the open and the
// lock, and another process may have made a new one.
Result<bool> is_current(const SafePath& path, const Fd& lock) {
  const auto there = stat_file(path / "lock");
  if (!there.ok()) return there.error().code == Errc::not_found ? Result<bool>(false) : there.error();
  WEFT_TRY(const struct stat st, stat_fd(lock.get(), path));
  return inode_of(*there) == inode_of(st);
}

// Renames the directory first, so that no other process finds one that is half removed. The caller has the lock.
Status remove_area(const SafePath& path) {
  const SafePath removed = path + ("." + random_hex(8));
  WEFT_CHECK(rename_file(path, removed));
  return remove_tree(removed);
}

}  // namespace

// The previous owner may remove the directory at any moment.
Result<Fd> PullArea::claim(const SafePath& path, const Patience& patience) {
  for (;;) {
    const Status made = make_directories(path, kPrivate);
    auto lock = made.ok() ? open_lock(path) : Result<Fd>(made.error());
    if (!lock.ok() && lock.error().code == Errc::not_found) continue;
    if (!lock.ok()) return lock;
    WEFT_CHECK(wait_for_lock(lock->get(), LockKind::exclusive, patience, path));
    WEFT_TRY(const bool current, is_current(path, *lock));
    if (current) return lock;
  }
}

Result<PullArea> PullArea::open(const SafePath& pulls, const std::string& key, const Patience& patience) {
  WEFT_CHECK(make_directories(pulls, kPrivate));
  WEFT_TRY(Fd lock, claim(pulls / key, patience));
  PullArea area(pulls / key, std::move(lock));
  WEFT_CHECK(make_directories(area.files(), kPrivate));
  WEFT_CHECK(make_directories(area.notes(), kPrivate));
  return area;
}

PullArea::~PullArea() {
  if (lock_.valid()) touch_file(lock_.get());
}

Status PullArea::remove() {
  return remove_area(path_);
}

Status remove_old_pulls(const SafePath& pulls, std::chrono::seconds kept) {
  const auto names = list_directory(pulls);
  if (!names.ok()) return names.error().code == Errc::not_found ? Status{} : Status{names.error()};
  for (const std::string& name : *names) {
    const SafePath path = pulls / name;
    const auto lock = open_lock(path);
    // try_lock() would write its owner into the file, and so make the area young.
    if (!lock.ok() || !lock_fd(lock->get(), LockKind::exclusive, LockWait::no, path).ok()) continue;
    WEFT_TRY(const struct stat st, stat_fd(lock->get(), path));
    if (nanoseconds(st.st_mtim) + static_cast<std::uint64_t>(std::chrono::nanoseconds(kept).count()) > now_ns())
      continue;
    const auto current = is_current(path, *lock);
    if (!current.ok() || !*current) continue;
    WEFT_CHECK(remove_area(path));
    log_info("{}: removed: no pull has used it for long", path);
  }
  return {};
}

}  // namespace weft
