#include "reading/prefetch_window.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace weft::testing {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kSize = 1024 * kMiB;

// A page cache that remembers which pages are in it.
class Cache {
 public:
  void bring_in(const std::vector<Range>& ranges) {
    for (const Range& range : ranges) {
      CHECK(range.length > 0);
      for (std::uint64_t at = range.offset; at < range.offset + range.length; at += 4096) pages_.insert(at);
      filled += range.length;
    }
  }
  // A reader takes all of [from, to): the kernel brings in what is missing.
  void read(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t at = from / 4096 * 4096; at < to; at += 4096) pages_.insert(at);
  }
  PrefetchWindow::IsReached look() {
    return [this](std::uint64_t offset) { return pages_.contains(offset / 4096 * 4096); };
  }
  PrefetchWindow::AnyCached look_all() {
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
  std::set<std::uint64_t> pages_;
};

std::vector<std::uint64_t> borders_every(std::uint64_t step) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t at = 100; at < kSize; at += step) out.push_back(at);
  return out;
}

}  // namespace

TEST_CASE("who looks at the first page of each tensor, and no other, is preceded to the end") {
  for (const std::uint64_t tensor : {kMiB, 4 * kMiB, 7 * kMiB}) {
    CAPTURE(tensor);
    Cache cache;
    const auto borders = borders_every(tensor);
    PrefetchWindow window(kSize, borders, {});
    for (const std::uint64_t border : borders) {
      cache.bring_in(window.advance(cache.look()));
      cache.read(border, border + 1);
      CHECK(cache.front() >= std::min(border + 7 * kMiB, kSize));
      CHECK(cache.front() <= border + 64 * kMiB);
    }
  }
}

TEST_CASE("an opened file has its beginning brought in, and no more while nobody reads") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), {});
  cache.bring_in(window.advance(cache.look()));
  CHECK(cache.filled > 15 * kMiB);
  CHECK(cache.filled <= 16 * kMiB);
  for (int i = 0; i < 100; ++i) {
    CHECK(window.advance(cache.look()).empty());
    CHECK_FALSE(window.jumped(cache.look_all()));
  }
}

TEST_CASE("the window goes before a reader, never further than its size, to the end of the file") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), {});
  std::uint64_t ahead_min = kSize;
  for (std::uint64_t reader = 0; reader < kSize; reader += kMiB / 2) {
    cache.read(reader, reader + kMiB / 2);
    cache.bring_in(window.advance(cache.look()));
    CHECK(cache.front() <= reader + 65 * kMiB);
    if (reader > 16 * kMiB && reader < kSize - 64 * kMiB) ahead_min = std::min(ahead_min, cache.front() - reader);
  }
  CHECK(ahead_min >= 31 * kMiB);
  CHECK(window.at_end());
  CHECK(cache.front() == kSize);
}

TEST_CASE("where the use of a page is seen nothing is left out, and the window goes before a reader alike") {
  Cache cache;
  PrefetchShape shape;
  shape.leave_out = false;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), shape);
  std::uint64_t front = 0;
  std::uint64_t used = 0;
  std::uint64_t ahead_min = kSize;
  const auto reached = [&](std::uint64_t wire) { return wire < used; };
  for (std::uint64_t reader = 0; reader < kSize; reader += kMiB / 2) {
    used = reader + kMiB / 2;
    for (const Range& range : window.advance(reached)) {
      CHECK(range.offset == front);
      front = range.offset + range.length;
    }
    CHECK(front <= reader + 65 * kMiB);
    if (reader > 16 * kMiB && reader < kSize - 64 * kMiB) ahead_min = std::min(ahead_min, front - reader);
  }
  CHECK(ahead_min >= 39 * kMiB);
  CHECK(front == kSize);
  CHECK(window.at_end());
}

TEST_CASE("what is cached already is passed over") {
  Cache cache;
  cache.read(0, kSize / 2);
  PrefetchWindow window(kSize, borders_every(4 * kMiB), {});
  for (int i = 0; i < 1000; ++i) cache.bring_in(window.advance(cache.look()));
  CHECK(cache.front() >= kSize / 2);
  CHECK(cache.front() <= kSize / 2 + 64 * kMiB);
}

TEST_CASE("a tensor far away that is touched draws the window there, and little is brought in behind it") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(32 * kMiB), {});
  cache.bring_in(window.advance(cache.look()));
  CHECK_FALSE(window.jumped(cache.look_all()));
  cache.filled = 0;
  const std::uint64_t tensor = 100 + 20 * 32 * kMiB;
  cache.read(tensor - kMiB, tensor + kMiB);
  CHECK(window.jumped(cache.look_all()));
  for (std::uint64_t reader = tensor; reader < tensor + 32 * kMiB; reader += kMiB / 2) {
    cache.read(reader, reader + kMiB / 2);
    cache.bring_in(window.advance(cache.look()));
    CHECK_FALSE(window.jumped(cache.look_all()));
  }
  CHECK(cache.filled >= 32 * kMiB);
  CHECK(cache.filled <= (32 + 16) * kMiB);
}

TEST_CASE("jumps in a file of many tensors are found in few looks") {
  Cache cache;
  PrefetchWindow window(kSize, borders_every(kMiB / 16), {});  // 16384
  cache.bring_in(window.advance(cache.look()));
  CHECK_FALSE(window.jumped(cache.look_all()));
  cache.looks = 0;
  CHECK_FALSE(window.jumped(cache.look_all()));
  CHECK(cache.looks == 1);
  const std::uint64_t tensor = 100 + 7 * 100 * kMiB;
  cache.read(tensor, tensor + 4096);
  CHECK(window.jumped(cache.look_all()));
  CHECK(cache.looks < 40);
  const auto there = window.advance(cache.look());
  REQUIRE_FALSE(there.empty());
  CHECK(there[0].offset <= tensor);
}

TEST_CASE("tensors that were cached before are no sign of a reader") {
  Cache cache;
  cache.read(500 * kMiB, 600 * kMiB);
  PrefetchWindow window(kSize, borders_every(32 * kMiB), {});
  cache.bring_in(window.advance(cache.look()));
  CHECK_FALSE(window.jumped(cache.look_all()));
  CHECK_FALSE(window.jumped(cache.look_all()));
}

TEST_CASE("a reader who tells where he reads is followed without pages left out") {
  PrefetchShape shape;
  shape.wire_first = std::uint64_t{1} << 62U;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), shape);
  const auto never = [](std::uint64_t) { return false; };
  CHECK(window.advance(never) == std::vector<Range>{{0, 16 * kMiB}});
  CHECK(window.advance(never).empty());
  window.told(0, kMiB);
  CHECK(window.advance(never) == std::vector<Range>{{16 * kMiB, 16 * kMiB}});
  window.told(500 * kMiB, kMiB);
  const auto there = window.advance(never);
  REQUIRE(there.size() == 1);
  CHECK(there[0].offset == 501 * kMiB);
}

TEST_CASE("a file smaller than the first window is brought in whole") {
  Cache cache;
  PrefetchWindow window(3 * kMiB + 5, {8}, {});
  cache.bring_in(window.advance(cache.look()));
  CHECK(cache.filled == 3 * kMiB + 5 - 4096);
  CHECK(window.at_end());
}

TEST_CASE("what was touched and has left the page cache is noticed when it is touched again") {
  Cache cache;
  PrefetchShape shape;
  shape.leave_out = false;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), shape);
  while (!window.at_end()) cache.bring_in(window.advance(cache.look()));
  CHECK_FALSE(window.jumped(cache.look_all()));
  Cache later;
  CHECK_FALSE(window.jumped(later.look_all()));
  later.read(400 * kMiB, 405 * kMiB);
  CHECK_FALSE(window.jumped(later.look_all()));  // it was touched before
  Cache anew;
  const std::uint64_t looks = anew.looks;
  for (unsigned i = 0; i < 3; ++i) window.look_anew(anew.look_all(), 100);  // of 256 tensors
  CHECK(anew.looks == looks + 256);
  CHECK(window.advance(anew.look()).empty());
  CHECK_FALSE(window.jumped(anew.look_all()));
  anew.read(400 * kMiB, 405 * kMiB);
  CHECK(window.jumped(anew.look_all()));
  const auto wanted = window.advance(anew.look());
  REQUIRE_FALSE(wanted.empty());
  CHECK(wanted.front().offset / kMiB == 400);
}

TEST_CASE("who begins anew gets the file's beginning again") {
  Cache cache;
  PrefetchShape shape;
  shape.leave_out = false;
  PrefetchWindow window(kSize, borders_every(4 * kMiB), shape);
  CHECK_FALSE(window.begun());
  while (!window.at_end()) cache.bring_in(window.advance(cache.look()));
  CHECK(window.begun());
  Cache later;
  later.read(800 * kMiB, 900 * kMiB);
  window.restart(later.look_all());
  const auto wanted = window.advance(later.look());
  REQUIRE_FALSE(wanted.empty());
  CHECK(wanted.front().offset == 0);
  CHECK_FALSE(window.jumped(later.look_all()));  // what is left from before is no jump
}

}  // namespace weft::testing
