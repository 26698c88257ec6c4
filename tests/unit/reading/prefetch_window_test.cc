#include "reading/prefetch_window.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace weft::testing {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kSize = 1024 * kMiB;

// A page cache that records which pages it has, and which of them a reader has used.
class Cache {
 public:
  void bring_in(const std::optional<Range>& range) {
    if (!range) return;
    CHECK(range->length > 0);
    add(pages_, range->offset, range->offset + range->length);
    filled += range->length;
  }
  // Reads [from, to) as a reader does: the kernel adds the missing pages.
  void read(std::uint64_t from, std::uint64_t to) {
    kernel_reads(from, to);
    add(used_, from, to);
  }
  void kernel_reads(std::uint64_t from, std::uint64_t to) { add(pages_, from, to); }
  PrefetchWindow::IsUsed use() const {
    return [this](std::uint64_t offset) { return used_.contains(offset / 4096 * 4096); };
  }
  PrefetchWindow::AnyCached look() {
    return [this](const Range& range) {
      ++looks;
      const auto found = pages_.lower_bound(range.offset / 4096 * 4096);
      return found != pages_.end() && *found < range.offset + range.length;
    };
  }
  std::uint64_t front() const { return pages_.empty() ? 0 : *pages_.rbegin() + 4096; }
  std::uint64_t filled = 0;
  std::uint64_t looks = 0;

 private:
  static void add(std::set<std::uint64_t>& pages, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t at = from / 4096 * 4096; at < to; at += 4096) pages.insert(pages.end(), at);
  }

  std::set<std::uint64_t> pages_;
  std::set<std::uint64_t> used_;
};

std::vector<std::uint64_t> borders_every(std::uint64_t step) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t at = 100; at < kSize; at += step) out.push_back(at);
  return out;
}

void read_to_end(PrefetchWindow& window, Cache& cache) {
  for (std::uint64_t read = 0; !window.at_end(); read = cache.front()) {
    cache.bring_in(window.advance(cache.use()));
    cache.read(read, cache.front());
  }
}

}  // namespace

TEST_CASE("a reader of the first page of each tensor is read ahead to the end") {
  for (const std::uint64_t tensor : {kMiB, 4 * kMiB, 7 * kMiB}) {
    CAPTURE(tensor);
    Cache cache;
    const auto borders = borders_every(tensor);
    PrefetchWindow window(kSize, borders, {});
    for (const std::uint64_t border : borders) {
      cache.bring_in(window.advance(cache.use()));
      cache.read(border, border + 1);
      CHECK(cache.front() >= std::min(border + 7 * kMiB, kSize));
      CHECK(cache.front() <= border + 64 * kMiB);
    }
  }
}

TEST_CASE("an opened file is read ahead by one window only, without a reader") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), {});
  cache.bring_in(window.advance(cache.use()));
  CHECK(cache.filled > 15 * kMiB);
  CHECK(cache.filled <= 16 * kMiB);
  for (int i = 0; i < 100; ++i) {
    CHECK_FALSE(window.advance(cache.use()));
    CHECK_FALSE(window.jumped(cache.look()));
  }
}

TEST_CASE("the window goes before a reader, never further than its size, to the end of the file") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), {});
  std::uint64_t ahead_min = kSize;
  std::uint64_t asked = 0;
  for (std::uint64_t reader = 0; reader < kSize; reader += kMiB / 2) {
    cache.read(reader, reader + kMiB / 2);
    const auto wanted = window.advance(cache.use());
    if (wanted) CHECK(wanted->offset == std::exchange(asked, wanted->offset + wanted->length));  // without gaps
    cache.bring_in(wanted);
    CHECK(cache.front() <= reader + 65 * kMiB);
    if (reader > 16 * kMiB && reader < kSize - 64 * kMiB) ahead_min = std::min(ahead_min, cache.front() - reader);
  }
  CHECK(ahead_min >= 39 * kMiB);
  CHECK(window.at_end());
  CHECK(cache.front() == kSize);
}

TEST_CASE("cached parts are skipped") {
  Cache cache;
  cache.read(0, kSize / 2);
  PrefetchWindow window(kSize, borders_every(4 * kMiB), {});
  for (int i = 0; i < 1000; ++i) cache.bring_in(window.advance(cache.use()));
  CHECK(cache.front() >= kSize / 2);
  CHECK(cache.front() <= kSize / 2 + 64 * kMiB);
}

TEST_CASE("a touched tensor far away moves the window, with little read-ahead") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(32 * kMiB), {});
  cache.bring_in(window.advance(cache.use()));
  CHECK_FALSE(window.jumped(cache.look()));
  cache.filled = 0;
  const std::uint64_t tensor = 100 + 20 * 32 * kMiB;
  cache.read(tensor - kMiB, tensor + kMiB);
  CHECK(window.jumped(cache.look()));
  for (std::uint64_t reader = tensor; reader < tensor + 32 * kMiB; reader += kMiB / 2) {
    cache.read(reader, reader + kMiB / 2);
    cache.bring_in(window.advance(cache.use()));
    CHECK_FALSE(window.jumped(cache.look()));
  }
  CHECK(cache.filled >= 32 * kMiB);
  CHECK(cache.filled <= (32 + 16) * kMiB);
}

TEST_CASE("a reader that continues after a jump gets a full window again") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(32 * kMiB), {});
  cache.bring_in(window.advance(cache.use()));
  CHECK_FALSE(window.jumped(cache.look()));
  const std::uint64_t tensor = 100 + 20 * 32 * kMiB;
  cache.read(tensor, tensor + 4096);
  CHECK(window.jumped(cache.look()));
  std::uint64_t ahead_max = 0;
  for (std::uint64_t reader = tensor; reader < kSize - 64 * kMiB; reader += kMiB / 2) {
    cache.read(reader, reader + kMiB / 2);
    cache.bring_in(window.advance(cache.use()));
    ahead_max = std::max(ahead_max, cache.front() - reader);
  }
  CHECK(ahead_max > 60 * kMiB);
  CHECK(ahead_max <= 65 * kMiB);
}

TEST_CASE("the kernel's own read-ahead does not count as a sequential reader") {
  for (const std::uint64_t kernel_ahead : {kMiB / 4, 4 * kMiB, 8 * kMiB, 12 * kMiB}) {
    CAPTURE(kernel_ahead);
    Cache cache;
    PrefetchWindow window(kSize, borders_every(8 * kMiB), {});
    cache.bring_in(window.advance(cache.use()));
    CHECK_FALSE(window.jumped(cache.look()));
    const std::uint64_t tensor = 100 + 40 * 8 * kMiB;
    cache.read(tensor, tensor + 4096);
    CHECK(window.jumped(cache.look()));
    for (std::uint64_t reader = tensor; reader < tensor + 8 * kMiB; reader += kMiB / 2) {
      const std::uint64_t end = std::min(reader + kMiB / 2, tensor + 8 * kMiB);
      cache.read(reader, end);
      cache.kernel_reads(end, end + kernel_ahead);
      cache.bring_in(window.advance(cache.use()));
      CHECK_FALSE(window.jumped(cache.look()));
    }
    CHECK(cache.front() <= tensor + (8 + 16) * kMiB);
  }
}

TEST_CASE("jumps in a file of many tensors are found in few looks") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(kMiB / 16), {});  // 16,384 tensors
  cache.bring_in(window.advance(cache.use()));
  CHECK_FALSE(window.jumped(cache.look()));
  cache.looks = 0;
  CHECK_FALSE(window.jumped(cache.look()));
  CHECK(cache.looks == 1);
  const std::uint64_t tensor = 100 + 7 * 100 * kMiB;
  cache.read(tensor, tensor + 4096);
  CHECK(window.jumped(cache.look()));
  CHECK(cache.looks < 40);
  const auto there = window.advance(cache.use());
  REQUIRE(there);
  CHECK(there->offset <= tensor);
}

TEST_CASE("tensors that were cached before are no sign of a reader") {
  Cache cache;
  cache.read(500 * kMiB, 600 * kMiB);
  PrefetchWindow window(kSize, borders_every(32 * kMiB), {});
  cache.bring_in(window.advance(cache.use()));
  CHECK_FALSE(window.jumped(cache.look()));
  CHECK_FALSE(window.jumped(cache.look()));
}

TEST_CASE("a reader who tells where he reads is followed without wires") {
  PrefetchShape shape;
  shape.wire_first = std::uint64_t{1} << 62U;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), shape);
  const auto never = [](std::uint64_t) { return false; };
  CHECK(window.advance(never) == Range{0, 16 * kMiB});
  CHECK_FALSE(window.advance(never));
  window.told(0, kMiB);
  CHECK(window.advance(never) == Range{16 * kMiB, 16 * kMiB});
  window.told(500 * kMiB, kMiB);
  const auto there = window.advance(never);
  REQUIRE(there);
  CHECK(there->offset == 501 * kMiB);
}

TEST_CASE("a file smaller than the first window is brought in whole") {
  Cache cache;
  PrefetchWindow window(3 * kMiB + 5, {8}, {});
  cache.bring_in(window.advance(cache.use()));
  CHECK(cache.filled == 3 * kMiB + 5);
  CHECK(window.at_end());
}

TEST_CASE("a second touch of a tensor that left the page cache is detected") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), {});
  read_to_end(window, cache);
  CHECK_FALSE(window.jumped(cache.look()));
  Cache later;
  CHECK_FALSE(window.jumped(later.look()));
  later.read(400 * kMiB, 405 * kMiB);
  CHECK_FALSE(window.jumped(later.look()));  // it was touched before
  Cache anew;
  const std::uint64_t looks = anew.looks;
  for (unsigned i = 0; i < 3; ++i) window.scan_again(anew.look(), 100);  // of 256 tensors
  CHECK(anew.looks == looks + 256);
  CHECK_FALSE(window.advance(anew.use()));
  CHECK_FALSE(window.jumped(anew.look()));
  anew.read(400 * kMiB, 405 * kMiB);
  CHECK(window.jumped(anew.look()));
  const auto wanted = window.advance(anew.use());
  REQUIRE(wanted);
  CHECK(wanted->offset / kMiB == 400);
}

TEST_CASE("restart() reads ahead from the start of the file") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), {});
  CHECK_FALSE(window.begun());
  read_to_end(window, cache);
  CHECK(window.begun());
  Cache later;
  later.read(800 * kMiB, 900 * kMiB);
  window.restart(later.look());
  const auto wanted = window.advance(later.use());
  REQUIRE(wanted);
  CHECK(wanted->offset == 0);
  CHECK_FALSE(window.jumped(later.look()));  // pages left from an earlier reader are no jump
}

}  // namespace weft::testing
