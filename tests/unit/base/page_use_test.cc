#include "base/page_use.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "base/page_cache.h"
#include "base/sys.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

// A file on disk of 8 MiB of which nothing is cached; nothing where that cannot be had or seen.
Fd cold_file(const TempDir& dir) {
  auto opened = open_file(dir / "file", O_RDWR | O_CREAT);
  REQUIRE(opened.ok());
  Fd fd = std::move(opened).value();
  REQUIRE(append_exact(fd.get(), std::vector<std::byte>(8 * kMiB), "file").ok());
  REQUIRE(sync_file(fd.get(), "file").ok());
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  const auto left = cached_pages(fd.get(), 0, 8 * kMiB);
  return page_use_seen() && left.ok() && *left == 0 ? std::move(fd) : Fd();
}

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
  const Fd fd = cold_file(dir);
  if (!fd.valid()) {
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
