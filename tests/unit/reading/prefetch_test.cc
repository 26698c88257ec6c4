#include "reading/prefetch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "os/page_cache.h"
#include "os/sys.h"
#include "reading/prefetched_file.h"
#include "testing.h"

namespace weft::testing {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kSize = 24 * kMiB;

Fd make_file(const std::string& path) {
  auto opened = open_file(path, O_RDWR | O_CREAT);
  REQUIRE(opened.ok());
  REQUIRE(append_exact(opened->get(), std::vector<std::byte>(kSize), path).ok());
  REQUIRE(sync_file(opened->get(), path).ok());
  ::posix_fadvise(opened->get(), 0, 0, POSIX_FADV_DONTNEED);
  return std::move(opened).value();
}

PrefetchSubject subject_of(const Fd& fd, bool reads_seen) {
  return {{{0, kSize, fd.get(), 0}}, {8, 4 * kMiB, 16 * kMiB}, reads_seen};
}

bool comes_in(const Fd& fd, std::uint64_t length) {
  for (int i = 0; i < 1000; ++i) {
    const auto pages = cached_pages(fd.get(), 0, length);
    if (!pages.ok() || *pages * page_bytes() >= length) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("a watched file is brought in before those who tell where they read") {
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  Prefetcher prefetcher;
  const auto watch = prefetcher.watch(subject_of(fd, true));
  watch->begin();
  CHECK(comes_in(fd, 16 * kMiB));
  watch->told(0, 4 * kMiB);
  CHECK(comes_in(fd, kSize));
}

TEST_CASE("a file that is all in memory is left in peace, and followed again once some of it is dropped") {
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  Prefetcher prefetcher;
  start_reading(fd.get(), 0, kSize);
  REQUIRE(comes_in(fd, kSize));
  const auto watch = prefetcher.watch(subject_of(fd, true));
  watch->begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  watch->told(0, 0);
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  CHECK(comes_in(fd, 16 * kMiB));
  watch->told(0, 4 * kMiB);
  CHECK(comes_in(fd, kSize));
}

TEST_CASE("a file that seemed to be all in memory at a glance is looked through") {
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  Prefetcher prefetcher;
  start_reading(fd.get(), 0, kSize);
  REQUIRE(comes_in(fd, kSize));
  ::posix_fadvise(fd.get(), 10 * kMiB, 4 * kMiB, POSIX_FADV_DONTNEED);
  const auto watch = prefetcher.watch(subject_of(fd, true));
  watch->begin();
  CHECK(comes_in(fd, 16 * kMiB));
}

TEST_CASE("a closed file is watched on for a while after its readers last moved, and no longer") {
  using std::chrono_literals::operator""s;
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  PrefetchedFile file(subject_of(fd, false));
  const auto closed = PrefetchedFile::Clock::now();
  file.begin(closed);
  REQUIRE(file.leave(closed));
  const auto look = [&file](PrefetchedFile::Clock::time_point now) {
    for (const auto& part : file.step(now).parts) file.bring_in(part);
    return file.is_over();
  };
  for (auto after = 0s; after < PrefetchedFile::kLeftFor; after += 1s) CHECK(!look(closed + after));
  CHECK(look(closed + PrefetchedFile::kLeftFor + 1s));
}

TEST_CASE("watches begin and end at any time, with work of theirs under way") {
  TempDir dir;
  Prefetcher prefetcher;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 4; ++reader)
    readers.emplace_back([&, reader] {
      const Fd fd = make_file(dir / std::to_string(reader));
      for (int round = 0; round < 20; ++round) {
        const auto watch = prefetcher.watch(subject_of(fd, round % 2 == 0));
        if (round % 4 < 3) watch->begin();
        for (std::uint64_t at = 0; at < kSize; at += 3 * kMiB) watch->told(at, kMiB);
        if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  for (std::thread& reader : readers) reader.join();
  const Fd fd = make_file(dir / "last");
  const auto watch = prefetcher.watch(subject_of(fd, true));
  watch->begin();
  CHECK(comes_in(fd, 16 * kMiB));
}

}  // namespace weft::testing
