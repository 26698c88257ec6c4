#include "os/memory_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include <fmt/core.h>

#include "testing.h"

namespace weft {
namespace {

using namespace testing;

TEST_CASE("a reader of lent memory cannot change it") {
  const auto memory = must(LentMemory::make("bytes", as_bytes("the bytes")));
  struct stat facts {};
  REQUIRE(::fstat(memory->fd(), &facts) == 0);
  CHECK((facts.st_mode & 07777) == 0400);
  CHECK(::pwrite(memory->fd(), "x", 1, 0) < 0);
  // Root may open it for writing, whatever its mode.
  const Fd again(::open(fmt::format("/proc/self/fd/{}", memory->fd()).c_str(), O_RDWR | O_CLOEXEC));
  if (again.valid()) {
    CHECK(::pwrite(again.get(), "x", 1, 0) < 0);
    CHECK(::ftruncate(again.get(), 100) != 0);
    CHECK(::fcntl(again.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0);
  }
  std::array<std::byte, 9> got{};
  REQUIRE(read_exact(memory->fd(), 0, got, "bytes").ok());
  CHECK(as_text(got) == "the bytes");
}

TEST_CASE("a reader that keeps the descriptor of lent memory holds no bytes once the lender ends") {
  auto memory = must(LentMemory::make("bytes", random_bytes(100'000, 1)));
  const Fd kept(::fcntl(memory->fd(), F_DUPFD_CLOEXEC, 0));
  REQUIRE(kept.valid());
  struct stat facts {};
  REQUIRE(::fstat(kept.get(), &facts) == 0);
  CHECK(facts.st_blocks > 0);
  memory.reset();
  REQUIRE(::fstat(kept.get(), &facts) == 0);
  CHECK(facts.st_size == 0);
  CHECK(facts.st_blocks == 0);
}

}  // namespace
}  // namespace weft
