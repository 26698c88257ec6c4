#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/file_lock.h"
#include "os/sys.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr LockRange kAll{};

bool is_excluded(const Fd& fd, LockKind kind, LockRange range) {
  return excluded(fd.get(), kind, range, "f").value();
}

}  // namespace

TEST_CASE("locks of bytes exclude the same bytes of another description alone") {
  TempDir dir;
  write_file(dir / "f", "");
  Fd reader = open_file(dir / "f", O_RDONLY).value();
  Fd writer = open_file(dir / "f", O_RDWR).value();
  CHECK(lock_bytes(reader.get(), LockKind::shared, {7, 1}, "f").ok());
  CHECK(lock_bytes(writer.get(), LockKind::exclusive, {7, 1}, "f").error().code == Errc::busy);
  CHECK(lock_bytes(writer.get(), LockKind::exclusive, kAll, "f").error().code == Errc::busy);
  CHECK(lock_bytes(writer.get(), LockKind::exclusive, {6, 1}, "f").ok());
  CHECK(lock_bytes(writer.get(), LockKind::exclusive, {8, 0}, "f").ok());
  CHECK(lock_bytes(reader.get(), LockKind::shared, {1ULL << 62U, 1}, "f").error().code == Errc::busy);
  CHECK(unlock_bytes(reader.get(), kAll, "f").ok());
  CHECK(lock_bytes(writer.get(), LockKind::exclusive, kAll, "f").ok());
}

TEST_CASE("is_excluded() takes no lock") {
  TempDir dir;
  write_file(dir / "f", "");
  Fd a = open_file(dir / "f", O_RDONLY).value();
  Fd b = open_file(dir / "f", O_RDONLY).value();
  CHECK_FALSE(is_excluded(b, LockKind::exclusive, kAll));
  CHECK_FALSE(is_excluded(a, LockKind::exclusive, kAll));
  CHECK(lock_bytes(a.get(), LockKind::shared, {3, 1}, "f").ok());
  CHECK(is_excluded(b, LockKind::exclusive, {3, 1}));
  CHECK_FALSE(is_excluded(b, LockKind::shared, {3, 1}));
  CHECK_FALSE(is_excluded(a, LockKind::exclusive, {3, 1}));  // the lock is of the same open file description
  // `b` is not open for writing
  CHECK(lock_bytes(b.get(), LockKind::exclusive, {4, 1}, "f").error().code != Errc::busy);
}

TEST_CASE("locks of bytes outlive a process that shares their description, and end with its last copy") {
  TempDir dir;
  write_file(dir / "f", "");
  Fd kept = open_file(dir / "f", O_RDONLY).value();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(lock_bytes(kept.get(), LockKind::shared, {5, 1}, "f").ok() ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  Fd other = open_file(dir / "f", O_RDONLY).value();
  CHECK(is_excluded(other, LockKind::exclusive, {5, 1}));
  kept.reset();
  CHECK_FALSE(is_excluded(other, LockKind::exclusive, {5, 1}));
}
