#include "os/page_cache.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "cold_file.h"
#include "os/sys.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kSize = 7 * kMiB + 5000;

std::uint64_t pages(int fd, std::uint64_t offset, std::uint64_t length) {
  const auto found = cached_pages(fd, offset, length);
  REQUIRE(found.ok());
  return *found;
}

// Waits until the pages are cached: reads may still be running.
bool comes_in(int fd, std::uint64_t offset, std::uint64_t length) {
  for (int i = 0; i < 1000; ++i) {
    if (pages(fd, offset, length) * page_bytes() >= length) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("bring_in() reads the requested range and nothing else") {
  TempDir dir;
  const Fd fd = cold_file(dir, kSize);
  if (!fd.valid()) {
    MESSAGE("not tried: no page of a file can be dropped here");
    return;
  }
  bring_in(fd.get(), 2 * kMiB, 2 * kMiB);  // a large page, if the kernel supports them
  CHECK(comes_in(fd.get(), 2 * kMiB, 2 * kMiB));
  CHECK(pages(fd.get(), 0, 2 * kMiB) == 0);
  CHECK(pages(fd.get(), 4 * kMiB, kSize - 4 * kMiB) == 0);

  bring_in(fd.get(), 4 * kMiB + 8192, kMiB);  // a part of a large page
  CHECK(comes_in(fd.get(), 4 * kMiB + 8192, kMiB));
  CHECK(pages(fd.get(), 4 * kMiB, 2 * kMiB) * page_bytes() == kMiB);

  bring_in(fd.get(), 4 * kMiB, 2 * kMiB);  // the missing rest of a large page
  CHECK(comes_in(fd.get(), 4 * kMiB, 2 * kMiB));

  start_reading(fd.get(), 0, 4096);
  CHECK(comes_in(fd.get(), 0, 4096));
  bring_in(fd.get(), 0, 2 * kMiB);  // a reader is active there
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(pages(fd.get(), 0, 2 * kMiB) == 4096 / page_bytes());

  bring_in(fd.get(), 6 * kMiB, kSize - 6 * kMiB);  // the last large page
  CHECK(comes_in(fd.get(), 6 * kMiB, kSize - 6 * kMiB));
}

TEST_CASE("forget_pages() drops the requested range and nothing else") {
  TempDir dir;
  const Fd fd = cold_file(dir, kSize);
  if (!fd.valid()) {
    MESSAGE("not tried: no page of a file can be dropped here");
    return;
  }
  std::vector<std::byte> bytes(4 * kMiB);
  read_exactly_from_now_on(fd.get());
  REQUIRE(read_exact(fd.get(), 0, bytes, "file").ok());
  forget_pages(fd.get(), kMiB, 2 * kMiB);
  CHECK(pages(fd.get(), kMiB, 2 * kMiB) < 2 * kMiB / page_bytes() / 4);  // a large page may keep a part
  CHECK(pages(fd.get(), 0, kMiB / 2) * page_bytes() == kMiB / 2);
}
