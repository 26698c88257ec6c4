#include "pace/pace_gate.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fakes/manual_time.h"
#include "fakes/stepped_time.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

double waited(const PaceGate& gate, Traffic traffic, PaceRate rate) {
  return gate.figures().waited_s.at(static_cast<std::size_t>(traffic)).at(static_cast<std::size_t>(rate));
}
std::uint64_t bytes(const PaceGate& gate, Traffic traffic, PaceEnd end) {
  return gate.figures().bytes.at(static_cast<std::size_t>(traffic)).at(static_cast<std::size_t>(end));
}

}  // namespace

TEST_CASE("a read takes as long as its rate says, in small pieces, and the gate tells so") {
  ManualTime time;
  PaceGate gate(time);
  gate.set({.staging = 2'000'000});
  const Deadline begun = time.now();
  PaceGate::Read read(gate, Traffic::staging, PaceEnd::peer);
  std::uint64_t pieces = 0;
  for (std::size_t left = 10'000'000; left > 0; ++pieces) {
    const std::size_t piece = read.piece(left);
    CHECK(piece <= PaceLine::kPieceMax);
    CHECK(read.wait(piece, Deadline::max()));
    left -= piece;
  }
  const double seconds = std::chrono::duration<double>(time.now() - begun).count();
  CHECK(seconds == doctest::Approx((10'000'000 - (10'000'000 % PaceLine::kPieceMax)) / 2e6));
  CHECK(waited(gate, Traffic::staging, PaceRate::staging) == doctest::Approx(seconds));
  CHECK(bytes(gate, Traffic::staging, PaceEnd::peer) == 10'000'000);
  CHECK(gate.figures().pieces[2][0] == pieces);
  CHECK(gate.held_by(Traffic::staging) == "rate.staging");
  CHECK(gate.held_by(Traffic::ahead).empty());
  time.pass(2s);
  CHECK(gate.held_by(Traffic::staging).empty());
}

TEST_CASE("without a rate the gate counts bytes, and nothing waits") {
  ManualTime time;
  PaceGate gate(time);
  const Deadline begun = time.now();
  PaceGate::Read read(gate, Traffic::ahead, PaceEnd::origin);
  CHECK(!read.is_held());
  CHECK(read.piece(16U << 20U) == 16U << 20U);
  for (int i = 0; i < 3; ++i) CHECK(read.may_go(16U << 20U));
  CHECK(time.now() == begun);
  CHECK(bytes(gate, Traffic::ahead, PaceEnd::origin) == 48U << 20U);
}

TEST_CASE("a wait ends in time, and its read keeps its place") {
  ManualTime time;
  PaceGate gate(time);
  gate.set({.total = 1'000'000});
  PaceGate::Read first(gate, Traffic::ahead, PaceEnd::peer);
  PaceGate::Read second(gate, Traffic::ahead, PaceEnd::peer);
  CHECK(second.may_go(1'000'000));
  CHECK(!second.may_go(1));
  const Deadline begun = time.now();
  CHECK(!first.wait(100'000, begun + 300ms));
  CHECK(time.now() == begun + 300ms);
  CHECK(first.wait(100'000, Deadline::max()));
  CHECK(time.now() == begun + 1s);
  CHECK(second.wait(100'000, Deadline::max()));
  CHECK(time.now() == begun + 1s + 100ms);
}

TEST_CASE("other rates end the waits of those that wait already") {
  SteppedTime time;
  PaceGate gate(time);
  gate.set({.total = 1'000'000});
  PaceGate::Read first(gate, Traffic::ahead, PaceEnd::peer);
  CHECK(first.may_go(100'000));
  std::atomic<bool> passed = false;
  std::thread waits([&] { passed = first.wait(100'000, Deadline::max()); });
  CHECK(time.next_pause() == 100ms);
  gate.set({});
  waits.join();
  CHECK(passed);
  CHECK(!first.is_held());
}

TEST_CASE("a reader that comes later goes before a read ahead that waits") {
  SteppedTime time;
  PaceGate gate(time);
  gate.set({.total = 1'000'000});
  PaceGate::Read ahead(gate, Traffic::ahead, PaceEnd::peer);
  PaceGate::Read reader(gate, Traffic::foreground, PaceEnd::peer);
  CHECK(ahead.may_go(100'000));
  CHECK(!reader.may_go(100'000));
  std::atomic<bool> passed = false;
  std::thread waits([&] { passed = reader.wait(100'000, Deadline::max()); });
  CHECK(time.next_pause() == 100ms);
  CHECK(!ahead.may_go(100'000));
  time.pass(100ms);
  waits.join();
  CHECK(passed);
  CHECK(!ahead.may_go(100'000));  // the reader's bytes count
  CHECK(bytes(gate, Traffic::foreground, PaceEnd::peer) == 100'000);
}

TEST_CASE("a read that a reader begins to wait for goes on as one of foreground") {
  ManualTime time;
  PaceGate gate(time);
  gate.set({.staging = 1'000'000});
  bool waited_for = false;
  PaceGate::Read read(gate, Traffic::staging, PaceEnd::peer, [&] { return waited_for; });
  CHECK(read.may_go(100'000));
  CHECK(!read.may_go(100'000));
  waited_for = true;
  CHECK(read.may_go(100'000));
  CHECK(!read.is_held());
  CHECK(bytes(gate, Traffic::staging, PaceEnd::peer) == 100'000);
  CHECK(bytes(gate, Traffic::foreground, PaceEnd::peer) == 100'000);
}

}  // namespace weft::testing
