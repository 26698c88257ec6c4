#include "pace/pace_line.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft::testing {
namespace {

using namespace std::chrono_literals;
using Time = Deadline::duration;

constexpr std::uint64_t kPiece = 100'000;

struct Line {
  PaceLine line;
  Deadline now{std::chrono::hours(1'000)};
  std::uint64_t reads = 0;

  PacedRead read(Traffic traffic, PaceEnd end = PaceEnd::peer) { return {traffic, end, reads++, {}}; }
  // Returns how long a piece waits; nothing if it has passed.
  std::optional<Time> wait_of(PacedRead& read, std::uint64_t bytes = kPiece) {
    const auto held = line.pass(read, bytes, now);
    if (!held) return {};
    return held->until == Deadline::max() ? Time::max() : held->until - now;
  }
  bool passes(PacedRead& read, std::uint64_t bytes = kPiece) { return !wait_of(read, bytes); }
  std::optional<PaceRate> holder(PacedRead& read) {
    const auto held = line.pass(read, kPiece, now);
    return held ? std::optional(held->by) : std::nullopt;
  }
};

}  // namespace

TEST_CASE("without a rate no piece waits") {
  Line on;
  for (const auto traffic : {Traffic::foreground, Traffic::ahead, Traffic::staging}) {
    auto read = on.read(traffic, PaceEnd::origin);
    CHECK(!on.line.holds(traffic, PaceEnd::origin));
    for (int i = 0; i < 3; ++i) CHECK(on.passes(read, UINT64_MAX));
  }
  CHECK(on.line.is_empty());
}

TEST_CASE("pieces are evenly spaced, and nothing is saved up meanwhile") {
  Line on;
  on.line.set({.staging = 10'000'000});
  auto read = on.read(Traffic::staging);
  CHECK(on.passes(read));
  for (int i = 0; i < 5; ++i) {
    CHECK(on.wait_of(read) == 10ms);
    on.now += 10ms;
    CHECK(on.passes(read));
  }
  on.now += 10s;
  CHECK(on.passes(read));
  CHECK(on.wait_of(read) == 10ms);
}

TEST_CASE("a piece that was woken up late costs the rate little") {
  Line on;
  on.line.set({.total = 10'000'000});
  auto read = on.read(Traffic::ahead);
  CHECK(on.passes(read));
  CHECK(on.wait_of(read) == 10ms);
  on.now += 11ms;
  CHECK(on.passes(read));
  CHECK(on.wait_of(read) == 9ms);  // the piece was due a millisecond ago
  on.now += 1s;
  CHECK(on.passes(read));
  CHECK(on.wait_of(read) == 10ms - PaceLine::kLateMax);
}

TEST_CASE("a long piece goes into debt, and the next one pays") {
  Line on;
  on.line.set({.total = 10'000'000});
  auto reader = on.read(Traffic::foreground);
  CHECK(on.passes(reader, 50 * kPiece));
  CHECK(on.wait_of(reader) == 500ms);
  on.now += 500ms;
  CHECK(on.passes(reader));
}

TEST_CASE("bytes that came without a turn are paid by the next piece") {
  Line on;
  on.line.set({.total = 10'000'000});
  auto read = on.read(Traffic::foreground);
  on.line.owe(read, 3 * kPiece, on.now);
  CHECK(on.wait_of(read) == 30ms);
  on.now += 30ms;
  CHECK(on.passes(read));
}

TEST_CASE("which rates hold back which class") {
  const auto held = [](const PaceRates& rates, Traffic traffic, PaceEnd end) {
    Line on;
    on.line.set(rates);
    auto read = on.read(traffic, end);
    CHECK(on.passes(read));
    const auto by = on.holder(read);
    CHECK(by.has_value() == on.line.holds(traffic, end));
    return by;
  };
  constexpr auto kReader = Traffic::foreground;
  constexpr auto kAhead = Traffic::ahead;
  constexpr auto kStaging = Traffic::staging;
  const PaceRates staging{.staging = 1'000'000};
  const PaceRates total{.total = 1'000'000};
  const PaceRates origin{.origin = 1'000'000};
  CHECK(held(staging, kReader, PaceEnd::origin) == std::nullopt);
  CHECK(held(staging, kAhead, PaceEnd::origin) == std::nullopt);
  CHECK(held(staging, kStaging, PaceEnd::peer) == PaceRate::staging);
  for (const auto traffic : {kReader, kAhead, kStaging}) CHECK(held(total, traffic, PaceEnd::peer) == PaceRate::total);
  CHECK(held(origin, kReader, PaceEnd::origin) == std::nullopt);
  CHECK(held(origin, kAhead, PaceEnd::origin) == PaceRate::origin);
  CHECK(held(origin, kAhead, PaceEnd::peer) == std::nullopt);
  CHECK(held(origin, kStaging, PaceEnd::origin) == PaceRate::origin);
  // The slowest one names itself.
  const PaceRates all{.staging = 2'000'000, .total = 1'000'000, .origin = 4'000'000};
  CHECK(held(all, kStaging, PaceEnd::origin) == PaceRate::total);
}

TEST_CASE("the first class goes first, and of a class the read that began first") {
  Line on;
  on.line.set({.total = 10'000'000});
  auto staging = on.read(Traffic::staging);
  auto first = on.read(Traffic::ahead);
  auto second = on.read(Traffic::ahead);
  auto reader = on.read(Traffic::foreground);
  CHECK(on.passes(second));
  for (PacedRead* one : {&staging, &second, &first, &reader}) CHECK(on.wait_of(*one) == 10ms);
  on.now += 10ms;
  for (PacedRead* one : {&staging, &second, &first}) CHECK(!on.passes(*one));
  CHECK(on.passes(reader));
  on.now += 10ms;
  CHECK(!on.passes(staging));
  CHECK(!on.passes(second));
  CHECK(on.passes(first));
  on.now += 20ms;
  CHECK(!on.passes(staging));
  CHECK(on.passes(second));
  on.now += 10ms;
  CHECK(on.passes(staging));
  CHECK(on.line.is_empty());
}

TEST_CASE("a read that waits for another rate holds up nobody") {
  Line on;
  on.line.set({.total = 100'000'000, .origin = 1'000'000});
  auto from_origin = on.read(Traffic::ahead, PaceEnd::origin);
  CHECK(on.passes(from_origin));
  on.now += 1ms;
  CHECK(on.holder(from_origin) == PaceRate::origin);
  auto from_peer = on.read(Traffic::staging);
  CHECK(on.passes(from_peer));
}

TEST_CASE("a read that leaves the line holds up nobody") {
  Line on;
  on.line.set({.total = 10'000'000});
  auto first = on.read(Traffic::ahead);
  auto second = on.read(Traffic::ahead);
  CHECK(on.passes(second));
  CHECK(!on.passes(first));
  on.now += 10ms;
  CHECK(!on.passes(second));
  on.line.leave(first);
  CHECK(on.passes(second));
}

TEST_CASE("staging waits for a while after a reader had to wait") {
  Line on;
  on.line.set({.total = 100'000'000});
  auto reader = on.read(Traffic::foreground);
  auto staging = on.read(Traffic::staging);
  CHECK(on.passes(reader));
  CHECK(!on.passes(reader));
  on.now += 1ms;
  CHECK(on.passes(reader));
  on.now += 1ms;
  CHECK(on.wait_of(staging) == 19ms);
  auto ahead = on.read(Traffic::ahead);
  CHECK(on.passes(ahead));
  on.now += 19ms;
  CHECK(on.passes(staging));
}

TEST_CASE("a class that readers keep waiting gets a piece now and then") {
  Line on;
  on.line.set({.total = 10'000'000});
  auto reader = on.read(Traffic::foreground);
  auto staging = on.read(Traffic::staging);
  CHECK(on.passes(reader));
  int passed = 0;
  int of_readers = 0;
  for (int i = 0; i < 320; ++i) {  // 3.2 s
    CHECK(!on.passes(reader));     // the reader is always in the line
    on.now += 10ms;
    if (on.passes(staging)) ++passed;
    if (on.passes(reader)) ++of_readers;
  }
  CHECK(passed == 3);
  CHECK(of_readers == 317);
}

TEST_CASE("bytes of readers count for the origin, and others wait for them, but not for ever") {
  Line on;
  on.line.set({.origin = 10'000'000});
  auto reader = on.read(Traffic::foreground, PaceEnd::origin);
  auto ahead = on.read(Traffic::ahead, PaceEnd::origin);
  CHECK(on.passes(ahead));
  on.now += 10ms;
  CHECK(on.passes(reader, 20 * kPiece));
  CHECK(on.wait_of(ahead) == 200ms);
  for (int i = 0; i < 100; ++i) CHECK(on.passes(reader, 160 * kPiece));
  CHECK(on.wait_of(ahead) == PaceLine::kReadersDebtMax - 10ms);
  on.now += PaceLine::kReadersDebtMax;
  CHECK(on.passes(ahead));
}

TEST_CASE("other rates count at once, and owe nothing for earlier pieces") {
  Line on;
  on.line.set({.total = 1'000'000});
  auto read = on.read(Traffic::ahead);
  CHECK(on.passes(read));
  CHECK(on.wait_of(read) == 100ms);
  on.line.set({.staging = 5'000'000, .total = 1'000'000});  // the same rate
  CHECK(on.wait_of(read) == 100ms);
  on.line.set({.total = 100'000'000});
  CHECK(on.passes(read));
  CHECK(on.wait_of(read) == 1ms);
  on.line.set({});
  CHECK(on.passes(read));
}

TEST_CASE("a read in the line that no rate holds any more holds up nobody") {
  Line on;
  on.line.set({.staging = 1'000'000, .total = 1'000'000});
  auto ahead = on.read(Traffic::ahead), staging = on.read(Traffic::staging);
  CHECK(on.passes(ahead));
  CHECK(!on.passes(ahead));
  on.line.set({.staging = 2'000'000});  // the read ahead has not looked since
  CHECK(on.passes(staging));
}

TEST_CASE("no sum wraps") {
  Line on;
  on.line.set({.staging = UINT64_MAX, .total = 1, .origin = UINT64_MAX});
  auto read = on.read(Traffic::staging, PaceEnd::origin);
  CHECK(on.passes(read, UINT64_MAX));
  CHECK(on.wait_of(read) == 1h);
  on.now += 1h;
  CHECK(on.passes(read, 0));
  CHECK(on.passes(read, UINT64_MAX));
  auto reader = on.read(Traffic::foreground, PaceEnd::origin);
  for (int i = 0; i < 3; ++i) {
    on.now += 1h;
    CHECK(on.passes(reader, UINT64_MAX));
  }
}

}  // namespace weft::testing
