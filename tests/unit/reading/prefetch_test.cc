#include "reading/prefetch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "cold_file.h"
#include "os/page_cache.h"
#include "os/page_use.h"
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

// A mapping for which the kernel reads only the pages that are touched.
class MappedFile {
 public:
  MappedFile(const Fd& fd, std::uint64_t size)
      : size_(size), map_(::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0)) {
    REQUIRE(map_ != MAP_FAILED);
    REQUIRE(::madvise(map_, size, MADV_RANDOM) == 0);
  }
  ~MappedFile() { ::munmap(map_, size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  void touch(std::uint64_t offset) const { static_cast<void>(static_cast<const volatile char*>(map_)[offset]); }

 private:
  std::uint64_t size_;
  void* map_;
};

void read_byte(const Fd& fd, std::uint64_t offset) {
  char byte = 0;
  REQUIRE(::pread(fd.get(), &byte, 1, static_cast<off_t>(offset)) == 1);
}

// Keeps a file in memory. Without mlock(2) the kernel may drop its pages at any time.
class KeptInMemory {
 public:
  explicit KeptInMemory(const Fd& fd)
      : fd_(fd.get()), map_(::mmap(nullptr, kSize, PROT_READ, MAP_SHARED | MAP_POPULATE, fd_, 0)) {
    REQUIRE(map_ != MAP_FAILED);
    static_cast<void>(::mlock(map_, kSize));  // fails if the user's limit is too low
  }
  ~KeptInMemory() { ::munmap(map_, kSize); }
  KeptInMemory(const KeptInMemory&) = delete;
  KeptInMemory& operator=(const KeptInMemory&) = delete;
  void drop(std::uint64_t from, std::uint64_t to) const {
    char* const part = static_cast<char*>(map_) + from;
    REQUIRE(::munlock(part, to - from) == 0);
    REQUIRE(::madvise(part, to - from, MADV_DONTNEED) == 0);
    ::posix_fadvise(fd_, static_cast<off_t>(from), static_cast<off_t>(to - from), POSIX_FADV_DONTNEED);
  }

 private:
  int fd_;
  void* map_;
};

// Waits until each large page of [from, to) has been cached once. The kernel may drop earlier ones meanwhile.
bool comes_in(const Fd& fd, std::uint64_t from, std::uint64_t to) {
  for (int i = 0; i < 1000; ++i) {
    if (!cached_pages(fd.get(), from, to - from).ok()) return true;
    while (from < to && all_cached(fd.get(), from, std::min(kLargePage, to - from))) from += kLargePage;
    if (from >= to) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// True if a new file of make_file() is not cached. On a file system in memory it always is.
bool can_be_cold(const Fd& fd) {
  const auto pages = cached_pages(fd.get(), 0, kSize);
  if (pages.ok() && *pages == 0) return true;
  MESSAGE("not tried: the page cache cannot be seen, or nothing leaves it here");
  return false;
}

}  // namespace

TEST_CASE("a watched file is read ahead before files with reported reads") {
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  Prefetcher prefetcher;
  const auto watch = prefetcher.watch(subject_of(fd, true));
  watch->begin();
  CHECK(comes_in(fd, 0, 16 * kMiB));
  watch->told(0, 4 * kMiB);
  CHECK(comes_in(fd, 0, kSize));
}

TEST_CASE("a file that is all in memory is left in peace, and followed again once some of it is dropped") {
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  Prefetcher prefetcher;
  const KeptInMemory kept(fd);
  const auto watch = prefetcher.watch(subject_of(fd, true));
  watch->begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  watch->told(0, 0);
  kept.drop(0, kSize);
  CHECK(comes_in(fd, 0, 16 * kMiB));
  watch->told(0, 4 * kMiB);
  CHECK(comes_in(fd, 0, kSize));
}

TEST_CASE("a file that seemed to be all in memory at a glance is looked through") {
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  Prefetcher prefetcher;
  const KeptInMemory kept(fd);
  kept.drop(10 * kMiB, 14 * kMiB);
  const auto watch = prefetcher.watch(subject_of(fd, true));
  watch->begin();
  CHECK(comes_in(fd, 10 * kMiB, 14 * kMiB));
}

TEST_CASE("the state transitions of a prefetched file") {
  using State = PrefetchedFile::State;
  using namespace std::chrono_literals;
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  if (!can_be_cold(fd)) return;
  PrefetchedFile file(subject_of(fd, false));
  auto now = PrefetchedFile::Clock::now();
  std::uint64_t brought = 0;
  const auto step = [&] {
    for (const auto& part : file.step(now).parts) {
      file.bring_in(part);
      brought += part.end - part.offset;
    }
    now += 2ms;
  };
  // Later than the longest pause between two steps, and than a look through the file takes.
  const auto step_later = [&] {
    now += 60s;
    step();
  };
  CHECK(file.state() == State::fresh);
  step_later();
  CHECK(file.state() == State::fresh);
  CHECK(brought == 0);

  file.begin(now);
  CHECK(file.state() == State::starting);
  step();
  CHECK(file.state() == State::following);
  CHECK(brought > 15 * kMiB);

  const KeptInMemory kept(fd);
  now += 1s;
  file.begin(now);
  CHECK(file.state() == State::resting);
  step();
  CHECK(file.state() == State::resting);
  step_later();
  CHECK(file.state() == State::resting);  // the look through the file is over

  kept.drop(0, kSize);
  brought = 0;
  step_later();
  CHECK(file.state() == State::following);
  CHECK(brought > 15 * kMiB);  // the window starts at the beginning: none of it is cached any more

  REQUIRE(file.leave(now));
  CHECK(file.state() == State::following);
  CHECK_FALSE(file.rejoin(subject_of(make_file(dir / "other"), false)));
  REQUIRE(file.rejoin(subject_of(fd, false)));
  CHECK(file.state() == State::fresh);
  file.told(0, kMiB);
  CHECK(file.state() == State::following);
  CHECK_FALSE(file.leave(now));  // its reads are reported
  file.end();
  CHECK(file.is_over());
  brought = 0;
  step_later();
  CHECK(brought == 0);
}

TEST_CASE("an open does not reset a running reader's window") {
  using State = PrefetchedFile::State;
  using std::chrono_literals::operator""ms;
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  PrefetchedFile file(subject_of(fd, true));
  file.told(8 * kMiB, kMiB);
  REQUIRE(file.state() == State::following);
  const auto now = PrefetchedFile::Clock::now();
  file.begin(now);
  CHECK(file.state() == State::following);
  file.begin(now + 200ms);  // the reader has stopped
  CHECK(file.state() != State::following);
}

TEST_CASE("readers of mappings and by read(2) are followed by the pages that they use") {
  constexpr std::uint64_t kLong = 160 * kMiB;
  for (const bool mapped : {true, false}) {
    CAPTURE(mapped);
    TempDir dir;
    const Fd fd = cold_file(dir, kLong);
    if (!fd.valid() || !page_use_seen()) {
      MESSAGE("not tried: the use of a page cannot be seen here");
      return;
    }
    const MappedFile map(fd, kLong);
    read_exactly_from_now_on(fd.get());
    PrefetchedFile file({{{0, kLong, fd.get(), 0}}, {8}, false});
    auto now = PrefetchedFile::Clock::now();
    file.begin(now);
    std::uint64_t front = 0;  // everything before it was prefetched
    std::uint64_t missed = 0;
    std::uint64_t ahead_max = 0;
    for (std::uint64_t reader = 0; reader < kLong; reader += page_bytes()) {
      if (reader % (kMiB / 2) == 0) {
        now += std::chrono::milliseconds(1);
        for (const auto& part : file.step(now).parts) {
          file.bring_in(part);
          front = std::max(front, part.end);
        }
        CHECK(front <= reader + 65 * kMiB);
        ahead_max = std::max(ahead_max, front - std::min(front, reader));
      }
      if (reader >= front) ++missed;
      if (mapped)
        map.touch(reader);
      else
        read_byte(fd, reader);
    }
    CHECK(ahead_max > 50 * kMiB);
    CHECK(missed == 0);
  }
}

TEST_CASE("a closed file is watched on for a while after its readers last moved, and no longer") {
  using std::chrono_literals::operator""s;
  TempDir dir;
  const Fd fd = make_file(dir / "file");
  if (!can_be_cold(fd)) return;
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
  CHECK(comes_in(fd, 0, 16 * kMiB));
}

}  // namespace weft::testing
