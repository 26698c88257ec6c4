#include "packs/temp_area.h"

#include <fcntl.h>

#include <fmt/core.h>

namespace weft {
namespace {

constexpr int kNameAttempts = 16;

Result<Fd> lock_directory(const SafePath& path) {
  const SafePath lock = path / "lock";
  WEFT_TRY(Fd fd, open_file(lock, O_RDWR | O_CREAT, 0600));
  WEFT_CHECK(lock_fd(fd.get(), LockKind::exclusive, LockWait::no, lock));
  return fd;
}

}  // namespace

// Between mkdir and the lock, another process can mistake the directory for a stale one and remove it. The owner is the
// process that locks a lock file which still exists.
Result<Fd> TempArea::claim(const SafePath& path) {
  WEFT_CHECK(make_directory(path, 0700));  // mode 0700: no other user can open and lock it before it is placed
  WEFT_TRY(Fd fd, lock_directory(path));
  WEFT_TRY(struct stat st, stat_fd(fd.get(), path));
  if (st.st_nlink == 0) return Error{Errc::busy, fmt::format("{}: taken for a dead one", path)};
  return fd;
}

Result<std::unique_ptr<TempArea>> TempArea::make(const SafePath& store_path) {
  WEFT_CHECK(make_directories(store_path / "tmp"));
  Error last;
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    SafePath path = store_path / ("tmp/" + random_hex(8));
    auto lock = claim(path);
    if (lock.ok()) return std::unique_ptr<TempArea>(new TempArea(std::move(path), std::move(lock).value()));
    last = lock.error();
    if (last.code != Errc::busy && last.code != Errc::not_found && last.code != Errc::exists) break;
  }
  return last;
}

Result<std::unique_ptr<TempArea>> TempArea::make_at(const SafePath& path) {
  WEFT_CHECK(remove_if_stale(path, false));
  auto lock = claim(path);
  if (!lock.ok() && lock.error().code == Errc::exists) return Error{Errc::busy, fmt::format("{}: in use", path)};
  if (!lock.ok()) return std::move(lock).error();
  return std::unique_ptr<TempArea>(new TempArea(path, std::move(lock).value()));
}

TempArea::~TempArea() {
  static_cast<void>(remove_tree(path_));
}

Result<bool> remove_if_stale(const SafePath& path, bool dry_run) {
  auto lock = lock_directory(path);
  if (!lock.ok()) {
    if (lock.error().code == Errc::busy || lock.error().code == Errc::not_found) return false;
    return lock.error();
  }
  if (!dry_run) WEFT_CHECK(remove_tree(path));
  return true;
}

}  // namespace weft
