// The parts of a simulated node that are not of src/swarm (bench/swarm_node.h).
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "bench/swarm_node.h"
#include "peers/swarm/swarm_sender.h"
#include "peers/swarm/swarm_session.h"
#include "swarm/swarm_types.h"
#include "unit/swarm/swarm.h"

namespace weft::sim {
namespace {

using std::chrono::milliseconds;
using testing::kStart;

// Makes the calls that are due, and returns the number of the last one; nothing: none was due.
std::optional<std::uint64_t> made(DirectoryCalls& calls, Join::State expected, SwarmTime now) {
  static std::uint64_t numbers = 0;
  std::optional<std::uint64_t> number;
  while (const auto state = calls.next(now)) {
    CHECK(*state == expected);
    number = ++numbers;
    calls.made(*number, *state, now);
  }
  return number;
}

}  // namespace

TEST_CASE("a simulated node joins again after a pause if its directory node does not answer") {
  DirectoryCalls calls(kStart);
  const auto first = made(calls, Join::State::fetches, kStart);
  REQUIRE(first);
  CHECK(!made(calls, Join::State::fetches, kStart));  // one at a time
  CHECK(calls.due() == kStart + kJoinPatience);
  const SwarmTime failed = kStart + kJoinPatience;
  calls.expire(failed);
  CHECK(!calls.answered(*first));
  CHECK(!made(calls, Join::State::fetches, failed));
  CHECK(calls.needs_holders());
  CHECK(!calls.needs_holders());
  RetryPause pause = SwarmSession::kJoinPause;
  const SwarmTime again = failed + pause.failed();
  CHECK(calls.due() == again);
  const auto second = made(calls, Join::State::fetches, again);
  REQUIRE(second);
  CHECK(calls.answered(*second));
  calls.joined(again, false);
  CHECK(calls.knows_directory());
  CHECK(calls.due() == again + SwarmSession::kLivesEvery);
}

TEST_CASE("a simulated node that lives says so, and joins again if nobody hears it") {
  DirectoryCalls calls(kStart);
  REQUIRE(calls.answered(made(calls, Join::State::fetches, kStart).value()));
  calls.joined(kStart, true);
  CHECK(calls.needs_holders());
  const SwarmTime first = kStart + SwarmSession::kLivesEvery;
  REQUIRE(calls.answered(made(calls, Join::State::lives, first).value()));
  const SwarmTime second = first + SwarmSession::kLivesEvery;
  REQUIRE(made(calls, Join::State::lives, second));
  calls.expire(second + kJoinPatience);
  CHECK(!calls.knows_directory());
  CHECK(made(calls, Join::State::fetches, second + kJoinPatience));
}

TEST_CASE("a want of a simulated node ends when its partner has given nothing for long enough") {
  SimNode node(Units(8), 1, kStart);
  node.wants = {{1, 5, kStart}, {2, 6, kStart}, {3, 5, kStart + milliseconds(1)}};
  node.links[6].heard = kStart + milliseconds(10);
  const SwarmTime due = kStart + kWantPatience;
  CHECK(node.wants_due(kStart) == due);
  CHECK(!node.take_silent_want(due - milliseconds(1)));
  CHECK(node.take_silent_want(due) == 5U);
  CHECK(!node.take_silent_want(due));
  CHECK(node.wants_due(due) == due + milliseconds(1));
  CHECK(node.take_silent_want(due + milliseconds(1)) == 5U);
  CHECK(node.wants_due(due + milliseconds(1)) == due + milliseconds(10));
  CHECK(node.take_want(2));
  CHECK(!node.take_want(2));
  CHECK(!node.wants_due(due));
}

TEST_CASE("an upload of a simulated node ends in time, and its receiver then gets one at a time") {
  RunningUploads uploads;
  uploads.begin(5, 0, kStart);
  uploads.begin(5, 1, kStart + milliseconds(1));
  const SwarmTime due = kStart + SwarmSender::kUploadMax;
  CHECK(uploads.due() == due);
  CHECK(!uploads.waits_for_read(5));
  const auto old = uploads.take_old(due);
  REQUIRE(old);
  CHECK(old->unit == 0);
  CHECK(!uploads.take_old(due));
  CHECK(uploads.waits_for_read(5));
  CHECK(!uploads.end(5, 0, true));  // it has ended
  CHECK(uploads.waits_for_read(5));
  CHECK(uploads.end(5, 1, true));
  uploads.begin(5, 2, due);
  CHECK(!uploads.waits_for_read(5));
}

}  // namespace weft::sim
