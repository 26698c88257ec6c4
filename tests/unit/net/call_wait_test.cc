#include "net/calls/call_wait.h"

#include <doctest/doctest.h>

namespace weft::net {
namespace {

using namespace std::chrono_literals;

const Deadline kNow = Deadline(1h);
const OnSign kGoesOn = [] { return true; };
const OnSign kNone;

TEST_CASE("each new sign of life moves the deadline, for a caller that wants to know of signs") {
  CallWait wait(kNow, kNow + 3s, kGoesOn);
  wait.begin(kNow);
  CHECK(wait.heard(kNow + 2s));
  CHECK(wait.deadline() == kNow + 5s);
  CHECK_FALSE(wait.heard(kNow + 2s));
  CHECK_FALSE(wait.heard(kNow + 1s));  // an older sign
  CHECK(wait.deadline() == kNow + 5s);
  wait.answered(kNow + 4s);
  CHECK(wait.deadline() == kNow + 7s);
}

TEST_CASE("signs before the request was sent do not count") {
  CallWait wait(kNow, kNow + 3s, kGoesOn);
  wait.begin(kNow + 1s);
  CHECK_FALSE(wait.heard(kNow + 1s));
  CHECK(wait.deadline() == kNow + 3s);
}

TEST_CASE("the deadline of a caller without OnSign is fixed") {
  CallWait wait(kNow, kNow + 3s, kNone);
  wait.begin(kNow);
  CHECK_FALSE(wait.heard(kNow + 1s));
  wait.answered(kNow + 2s);
  CHECK(wait.deadline() == kNow + 3s);
}

TEST_CASE("the first question about a call is due early, later ones every second, and none after the deadline") {
  CallWait wait(kNow, kNow + 10s, kNone);
  wait.begin(kNow);
  CHECK(wait.next() == kNow + kFirstSignAfter);
  wait.asked(kNow + 1s);
  CHECK(wait.next() == kNow + 1s + 2 * kFirstSignAfter);
  wait.asked(kNow + 2s);
  wait.asked(kNow + 3s);
  CHECK(wait.next() == kNow + 3s + kSignEvery);
  wait.asked(kNow + 9500ms);
  CHECK(wait.next() == kNow + 10s);
}

TEST_CASE("a second try of a call asks as early as the first, within the same deadline") {
  CallWait wait(kNow, kNow + 3s, kGoesOn);
  wait.begin(kNow);
  wait.asked(kNow);
  wait.begin(kNow + 1s);
  CHECK(wait.next() == kNow + 1s + kFirstSignAfter);
  CHECK(wait.deadline() == kNow + 3s);
}

}  // namespace
}  // namespace weft::net
