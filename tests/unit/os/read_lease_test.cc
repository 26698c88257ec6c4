// Read leases: they tell whether a file can have been written to.
#include <doctest/doctest.h>
#include <fcntl.h>

#include "os/file_ops.h"
#include "testing.h"

namespace weft {
namespace {

using namespace testing;

TEST_CASE("a lease ends when somebody opens the file for writing") {
  const TempDir dir;
  write_file(dir / "x", "x");
  const Fd fd = must(open_file(dir / "x", O_RDONLY));
  const auto lease = ReadLease::take(fd.get());
  REQUIRE(lease);
  CHECK(lease->holds());
  CHECK(not_written(fd.get()));
  CHECK(lease->holds());
  const Fd reader = must(open_file(dir / "x", O_RDONLY));
  CHECK(lease->holds());
  // The writer does not wait, but its open breaks the lease.
  CHECK_FALSE(Fd(::open((dir / "x").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).valid());
  CHECK_FALSE(lease->holds());
}

TEST_CASE("a file with a writer has no lease") {
  const TempDir dir;
  write_file(dir / "x", "x");
  const Fd fd = must(open_file(dir / "x", O_RDONLY));
  const Fd writer = must(open_file(dir / "x", O_WRONLY));
  CHECK_FALSE(ReadLease::take(fd.get()));
}

}  // namespace
}  // namespace weft
