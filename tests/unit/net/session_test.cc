#include "net/session/session.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "testing.h"

namespace weft::net {
namespace {

struct Pair {
  Session a;
  Session b;
};

Pair make_pair() {
  const CipherState ab{Secret{random_bytes()}};
  const CipherState ba{Secret{random_bytes()}};
  return {Session({1, 2, "b", {}}, ab, ba), Session({2, 1, "a", {}}, ba, ab)};
}

Result<std::vector<std::byte>> open(Session& session, const std::vector<std::byte>& frame) {
  WEFT_TRY(const FrameView view, parse_frame(frame));
  return session.open(view);
}

std::vector<std::byte> sealed(Session& session, std::string_view text) {
  auto frame = session.seal(FrameKind::message, testing::as_bytes(text));
  REQUIRE(frame.ok());
  return *frame;
}

TEST_CASE("each side opens the frames that the other sealed") {
  Pair pair = make_pair();
  for (int i = 0; i < 10; ++i) {
    const auto there = sealed(pair.a, "ping");
    const auto payload = open(pair.b, there);
    REQUIRE(payload.ok());
    CHECK(testing::as_text(*payload) == "ping");
    CHECK(open(pair.a, sealed(pair.b, "pong")).ok());
  }
}

TEST_CASE("frames reveal neither their content nor that two are equal") {
  Pair pair = make_pair();
  const std::string_view text = "the key of a window";
  const auto first = sealed(pair.a, text);
  const auto second = sealed(pair.a, text);
  CHECK(testing::as_text(first).find(text) == std::string_view::npos);
  const auto payload = [](const auto& frame) { return std::span(frame).subspan(kFrameHeaderBytes); };
  CHECK(!std::ranges::equal(payload(first), payload(second)));
  const auto opened = open(pair.b, second);
  REQUIRE(opened.ok());
  CHECK(testing::as_text(*opened) == text);
}

TEST_CASE("a replayed, an old or a reflected frame is refused, and the session goes on") {
  Pair pair = make_pair();
  const auto first = sealed(pair.a, "1");
  const auto second = sealed(pair.a, "2");
  REQUIRE(open(pair.b, second).ok());
  CHECK(open(pair.b, second).error().code == Errc::permission);
  CHECK(open(pair.b, first).error().code == Errc::permission);
  CHECK(open(pair.a, first).error().code == Errc::permission);
  CHECK(open(pair.b, sealed(pair.a, "3")).ok());
}

TEST_CASE("any bit that is changed makes a frame worthless, and changes nothing") {
  Pair pair = make_pair();
  const auto frame = sealed(pair.a, "some payload");
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    auto bad = frame;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    CHECK(!open(pair.b, bad).ok());
  }
  CHECK(open(pair.b, frame).ok());
}

TEST_CASE("keys roll, also when the frames at the turn were lost, and an old epoch ends") {
  Pair pair = make_pair();
  const auto early = sealed(pair.a, "early");
  for (std::uint64_t i = 1; i < kFramesPerEpoch; ++i) sealed(pair.a, "lost");
  const auto rolled = sealed(pair.a, "rolled");
  const auto view = parse_frame(rolled);
  REQUIRE(view.ok());
  CHECK(view->header.epoch == 1);
  CHECK(open(pair.b, rolled).ok());
  CHECK(!open(pair.b, early).ok());
  CHECK(open(pair.b, sealed(pair.a, "on")).ok());
}

TEST_CASE("a forged next epoch does not make the keys roll") {
  Pair pair = make_pair();
  auto forged = make_frame({FrameKind::message, 1, 2, 99}, testing::as_bytes("x"));
  CHECK(open(pair.b, forged).error().code == Errc::permission);
  CHECK(open(pair.b, sealed(pair.a, "fine")).ok());
}

TEST_CASE("the last counter of all is no counter of a frame, so that no counter comes twice") {
  const CipherState ab{Secret{random_bytes()}};
  Session b({2, 1, "a", {}}, ab, ab);
  const auto last = [&](std::uint64_t counter) {
    auto frame = make_frame({FrameKind::message, 0, 2, counter}, testing::as_bytes("x"));
    const std::span<std::byte> all(frame);
    ab.encrypt(counter, all.first(kFrameHeaderBytes), all.subspan(kFrameHeaderBytes, 1), all.last<kFrameTagBytes>());
    return frame;
  };
  CHECK(open(b, last(UINT64_MAX)).error().code == Errc::permission);
  CHECK(open(b, last(UINT64_MAX - 1)).ok());
  CHECK(open(b, last(UINT64_MAX - 1)).error().code == Errc::permission);
  CHECK(open(b, last(UINT64_MAX)).error().code == Errc::permission);
  CHECK(open(b, last(0)).error().code == Errc::permission);
}

TEST_CASE("payloads that do not fit are refused") {
  Pair pair = make_pair();
  CHECK(pair.a.seal(FrameKind::message, std::vector<std::byte>(kPayloadBytesMax)).ok());
  CHECK(pair.a.seal(FrameKind::message, std::vector<std::byte>(kPayloadBytesMax + 1)).error().code == Errc::invalid);
}

}  // namespace
}  // namespace weft::net
