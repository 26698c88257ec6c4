#include "net/session/frame.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "testing.h"

namespace weft::net {
namespace {

TEST_CASE("a frame survives encoding") {
  const auto payload = testing::random_bytes(100, 1);
  const auto frame = make_frame({FrameKind::message, 7, 0x1122334455667788, 42}, payload);
  const auto view = parse_frame(frame);
  REQUIRE(view.ok());
  CHECK(view->header.kind == FrameKind::message);
  CHECK(view->header.epoch == 7);
  CHECK(view->header.session == 0x1122334455667788);
  CHECK(view->header.counter == 42);
  CHECK(std::equal(view->payload.begin(), view->payload.end(), payload.begin(), payload.end()));
  CHECK(view->authenticated.size() + view->tag.size() == frame.size());
}

TEST_CASE("the layout is the documented one") {
  const auto frame = make_frame({FrameKind::close, 0x0201, 0x0807060504030201, 9}, {});
  REQUIRE(frame.size() == kFrameHeaderBytes + kFrameTagBytes);
  CHECK(testing::as_text(std::span(frame).first(4)) == "WFT1");
  CHECK(frame[4] == std::byte{5});
  CHECK(frame[5] == std::byte{0});
  for (unsigned i = 0; i < 8; ++i) CHECK(frame[8 + i] == static_cast<std::byte>(i + 1));
  CHECK(frame[16] == std::byte{9});
}

TEST_CASE("frames that are cut, too long, of another kind or magic are refused") {
  const auto frame = make_frame({FrameKind::message, 0, 1, 1}, testing::random_bytes(50, 2));
  for (std::size_t size = 0; size < kFrameHeaderBytes + kFrameTagBytes; ++size)
    CHECK(parse_frame(std::span(frame).first(size)).error().code == Errc::invalid);
  CHECK(!parse_frame(std::vector<std::byte>(kMessageBytesMax + 1)).ok());
  for (const std::size_t at : {0U, 3U, 5U}) {
    auto bad = frame;
    bad[at] ^= std::byte{0x40};
    CHECK(!parse_frame(bad).ok());
  }
  for (unsigned kind = 0; kind < 256; ++kind) {
    auto other = frame;
    other[4] = static_cast<std::byte>(kind);
    CHECK(parse_frame(other).ok() == (kind >= 1 && kind <= 5));
  }
}

TEST_CASE("the largest payload fills one message of the transport") {
  const auto frame = make_frame({}, testing::random_bytes(kPayloadBytesMax, 3));
  CHECK(frame.size() == kMessageBytesMax);
  CHECK(parse_frame(frame).ok());
}

}  // namespace
}  // namespace weft::net
