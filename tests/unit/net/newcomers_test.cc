#include "net/calls/newcomers.h"

#include <doctest/doctest.h>

#include <cstring>

#include "base/limits.h"

namespace weft::net {
namespace {

using namespace std::chrono_literals;

EndpointAddress address(std::size_t number) {
  EndpointAddress out(sizeof number);
  std::memcpy(out.data(), &number, sizeof number);
  return out;
}

// Returns how many of 1,000 addresses, from number `first` on, are admitted.
std::size_t admitted(Newcomers& newcomers, std::size_t first, bool proved, Newcomers::Clock::time_point now) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < 1000; ++i)
    if (newcomers.admit(address(first + i), proved, now)) ++count;
  return count;
}

TEST_CASE("newcomers with the key are admitted up to one limit, strangers up to a smaller one") {
  Newcomers newcomers;
  const auto now = Newcomers::Clock::now();
  CHECK(admitted(newcomers, 0, false, now) == limits::kPeerStrangersMax);
  CHECK(admitted(newcomers, 10'000, true, now) == limits::kPeerNewcomersMax);
  CHECK(admitted(newcomers, 20'000, true, now + Newcomers::kInDoubt / 2) == 0);
  CHECK(admitted(newcomers, 20'000, true, now + Newcomers::kInDoubt) == limits::kPeerNewcomersMax);
}

TEST_CASE("one address is one, however often it is named, and none once somebody is there") {
  Newcomers newcomers;
  const auto now = Newcomers::Clock::now();
  for (int i = 0; i < 1000; ++i) CHECK(newcomers.admit(address(1), true, now));
  CHECK(admitted(newcomers, 10'000, true, now) == limits::kPeerNewcomersMax - 1);
  CHECK(newcomers.admit(address(1), true, now));
  CHECK(!newcomers.admit(address(2), true, now));
  newcomers.authenticated(address(1));
  CHECK(newcomers.admit(address(2), true, now));
}

TEST_CASE("a known address is no newcomer until it leaves the table") {
  Newcomers newcomers;
  const auto now = Newcomers::Clock::now();
  newcomers.authenticated(address(1), now);
  CHECK(admitted(newcomers, 10'000, true, now) == limits::kPeerNewcomersMax);
  CHECK(newcomers.admit(address(1), true, now));
  for (std::size_t i = 0; i < limits::kPeerSessionsMax; ++i) newcomers.authenticated(address(20'000 + i), now + 1s);
  CHECK(!newcomers.admit(address(1), true, now));
}

TEST_CASE("an address that is named again is in doubt for longer") {
  Newcomers newcomers;
  const auto now = Newcomers::Clock::now();
  CHECK(admitted(newcomers, 0, false, now) == limits::kPeerStrangersMax);
  CHECK(newcomers.admit(address(0), false, now + 1s));
  CHECK(admitted(newcomers, 10'000, false, now + Newcomers::kInDoubt) == limits::kPeerStrangersMax - 1);
}

}  // namespace
}  // namespace weft::net
