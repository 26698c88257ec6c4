#include "os/page_use.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cold_file.h"
#include "os/page_cache.h"
#include "os/sys.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

bool comes_in(int fd, std::uint64_t offset) {
  bring_in(fd, offset, 2 * kMiB);
  for (int i = 0; i < 1000; ++i) {
    if (all_cached(fd, offset, 2 * kMiB)) return true;
    ::usleep(10000);
  }
  return false;
}

}  // namespace

TEST_CASE("reading a page or mapping it is a use, bringing it in and looking at it are none") {
  TempDir dir;
  const Fd fd = cold_file(dir, 8 * kMiB);
  if (!page_use_seen() || !fd.valid()) {
    MESSAGE("not tried: the use of a page cannot be seen here");
    return;
  }
  CHECK_FALSE(page_used(fd.get(), 0));  // not cached
  for (const std::uint64_t stretch : {0 * kMiB, 2 * kMiB, 4 * kMiB}) REQUIRE(comes_in(fd.get(), stretch));
  ::posix_fadvise(fd.get(), 6 * kMiB, 2 * kMiB, POSIX_FADV_WILLNEED);
  for (const std::uint64_t page : {0 * kMiB, 1 * kMiB, 2 * kMiB, 4 * kMiB, 6 * kMiB}) {
    CAPTURE(page);
    CHECK_FALSE(page_used(fd.get(), page));
    CHECK_FALSE(page_used(fd.get(), page));  // page_used() itself is no use
  }

  std::byte byte{};
  REQUIRE(::pread(fd.get(), &byte, 1, 0) == 1);
  CHECK(page_used(fd.get(), 0));
  CHECK_FALSE(page_used(fd.get(), 2 * kMiB));

  void* const map = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_POPULATE, fd.get(), 2 * kMiB);
  REQUIRE(map != MAP_FAILED);
  CHECK(page_used(fd.get(), 2 * kMiB));
  ::munmap(map, 4096);
  CHECK(page_used(fd.get(), 2 * kMiB));
  CHECK_FALSE(page_used(fd.get(), 4 * kMiB));
}
