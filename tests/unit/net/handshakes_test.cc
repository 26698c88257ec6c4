#include "net/calls/handshakes.h"

#include <doctest/doctest.h>

#include <string>

#include "base/limits.h"
#include "testing.h"

namespace weft::net {
namespace {

using namespace std::chrono_literals;

// A handshake with the peer of this number, begun by a caller who holds the key or does not.
HalfOpen half_open(PeerId peer, bool proved) {
  const KeyRing key(Secret{std::span<const std::byte, kSecretBytes>(random_bytes())});
  const Caller caller({key, "node-a", testing::random_bytes(16, 1), 11});
  const auto hello = parse_frame(caller.hello());
  REQUIRE(hello.ok());
  auto answerer = Answerer::answer({key, "node-b", testing::random_bytes(16, 2), 22}, *hello);
  REQUIRE(answerer.ok());
  std::vector<std::byte> welcome = answerer->welcome();
  return {std::move(*answerer), peer, proved, {hello->tag.begin(), hello->tag.end()}, std::move(welcome)};
}

TEST_CASE("a handshake is taken once, by its session") {
  Handshakes handshakes;
  CHECK_FALSE(handshakes.add(1, half_open(10, true)));
  CHECK_FALSE(handshakes.take(2));
  const auto taken = handshakes.take(1);
  REQUIRE(taken);
  CHECK(taken->peer == 10);
  CHECK_FALSE(handshakes.take(1));
  CHECK(handshakes.size() == 0);
}

TEST_CASE("a proved hello that comes again finds its welcome") {
  Handshakes handshakes;
  const HalfOpen proved = half_open(10, true), stranger = half_open(11, false);
  handshakes.add(1, proved);
  handshakes.add(2, stranger);
  const HalfOpen* found = handshakes.find(proved.hello_tag);
  REQUIRE(found != nullptr);
  CHECK(found->welcome == proved.welcome);
  CHECK(handshakes.find(stranger.hello_tag) == nullptr);
}

TEST_CASE("a stranger's handshake ends before one of a caller with the key") {
  Handshakes handshakes;
  const auto now = Handshakes::Clock::now();
  CHECK(handshakes.next_end() == Handshakes::Clock::time_point::max());
  handshakes.add(1, half_open(10, true), now);
  handshakes.add(2, half_open(11, false), now);
  const auto first = handshakes.next_end();
  CHECK(first > now);
  CHECK(handshakes.end_due(first - 1ms).empty());
  CHECK(handshakes.end_due(first) == std::vector<PeerId>{11});
  CHECK(handshakes.next_end() > first);
  CHECK(handshakes.end_all() == std::vector<PeerId>{10});
  CHECK(handshakes.size() == 0);
}

TEST_CASE("a stranger pushes out the oldest stranger, and no caller with the key") {
  Handshakes handshakes;
  const auto now = Handshakes::Clock::now();
  handshakes.add(1, half_open(1, true), now - 1h);
  for (std::uint64_t i = 0; i < limits::kPeerHalfOpenMax; ++i)
    CHECK_FALSE(handshakes.add(100 + i, half_open(100 + i, false), now + i * 1ms));
  CHECK_FALSE(handshakes.admits(testing::random_bytes(16, 3), false));
  CHECK(handshakes.admits(testing::random_bytes(16, 3), true));
  CHECK(handshakes.add(1000, half_open(1000, false), now + 1s) == PeerId{100});
  CHECK(handshakes.add(1001, half_open(1001, false), now + 1s) == PeerId{101});
  CHECK_FALSE(handshakes.add(1002, half_open(1002, true), now + 1s));
  CHECK(handshakes.take(1));
}

}  // namespace
}  // namespace weft::net
