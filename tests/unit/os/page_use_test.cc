#include "os/page_use.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "cold_file.h"
#include "os/page_cache.h"
#include "os/sys.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

PageUse brought_in(int fd, std::uint64_t offset) {
  bring_in(fd, offset, 2 * kMiB);
  for (int i = 0; i < 1000; ++i) {
    if (const auto page = page_use(fd, offset)) return *page;
    ::usleep(10000);
  }
  FAIL("it never came");
  return {};
}

}  // namespace

TEST_CASE("reading a page or mapping it is a use, bringing it in and looking at it are none") {
  TempDir dir;
  const Fd fd = cold_file(dir, 8 * kMiB);
  if (!page_use_seen() || !fd.valid()) {
    MESSAGE("not tried: the use of a page cannot be seen here");
    return;
  }
  CHECK_FALSE(page_use(fd.get(), 0));  // not cached
  const std::array<PageUse, 3> pages{brought_in(fd.get(), 0), brought_in(fd.get(), 2 * kMiB),
                                     brought_in(fd.get(), 4 * kMiB)};
  for (const PageUse& page : pages) CHECK_FALSE(used(page));
  CHECK(page_use(fd.get(), 2 * kMiB));
  CHECK_FALSE(used(pages[1]));

  std::byte byte{};
  REQUIRE(::pread(fd.get(), &byte, 1, 0) == 1);
  CHECK(used(pages[0]));
  CHECK_FALSE(used(pages[1]));

  void* const map = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_POPULATE, fd.get(), 2 * kMiB);
  REQUIRE(map != MAP_FAILED);
  CHECK(used(pages[1]));
  ::munmap(map, 4096);
  CHECK(used(pages[1]));
  CHECK_FALSE(used(pages[2]));
  CHECK(used(*page_use(fd.get(), 0)));  // also to who looks only now
}
