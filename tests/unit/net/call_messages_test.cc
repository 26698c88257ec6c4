#include "net/calls/call_messages.h"

#include <doctest/doctest.h>

#include "net/session/frame.h"
#include "testing.h"
#include "weft/cluster/exchange.h"

namespace weft::net {
namespace {

using testing::random_bytes;

template <class Message>
Message back(const Message& message) {
  const auto bytes = encode_body(message);
  CHECK(bytes.size() <= kPayloadBytesMax);
  return std::get<Message>(testing::must(decode_body(bytes)));
}

TEST_CASE("each message comes back as it was said, the largest within one frame") {
  CHECK(back(CallMessage{7, random_bytes(kRequestBytesMax, 1)}).request == random_bytes(kRequestBytesMax, 1));
  AnswerMessage answer{8, random_bytes(kShortHeadBytesMax - kAnswerWindowsMax * kWindowMessageBytes, 2), {}, {}};
  for (std::uint64_t i = 0; i < kAnswerWindowsMax; ++i) answer.windows.push_back({i, ~i, 1U << 20U});
  CHECK(back(answer).head == answer.head);
  CHECK(back(answer).windows == answer.windows);
  answer.head_hash = net::random_bytes();
  CHECK(back(answer).head_hash == answer.head_hash);
  CHECK(back(DoneMessage{9, 10}).read_bytes == 10);
  const AskMessage ask = back(AskMessage{11, 13, true});
  CHECK(ask.id == 11);
  CHECK(ask.number == 13);
  CHECK(ask.has_answer);
  for (const CallState state : {CallState::unknown, CallState::queued, CallState::in_work, CallState::answered}) {
    CHECK(back(KnownMessage{12, 14, state}).state == state);
    CHECK(back(KnownMessage{12, 14, state}).number == 14);
  }
}

TEST_CASE("a peer's error message is cut to one short line") {
  const auto failure = back(FailureMessage{1, {Errc::busy, "a\nb\x1b[2J" + std::string(100'000, 'x')}});
  CHECK(failure.error.code == Errc::busy);
  CHECK(failure.error.message.size() == 1024);
  CHECK(failure.error.message.starts_with("a?b?[2J"));
}

TEST_CASE("messages that are out of bounds are refused") {
  CHECK(!decode_body({}).ok());
  CHECK(!decode_body(random_bytes(100, 3)).ok());
  CHECK(!decode_body(encode_body(CallMessage{1, random_bytes(kRequestBytesMax + 1, 1)})).ok());
  CHECK(!decode_body(encode_body(AnswerMessage{1, {}, net::random_bytes(), {}})).ok());  // a long head without a window
  CHECK(!decode_body(encode_body(AnswerMessage{1, {}, net::random_bytes(), {{0, 1, kHeadBytesMax + 1}}})).ok());
  AnswerMessage many{1, {}, {}, std::vector<RemoteWindow>(kAnswerWindowsMax + 2)};
  CHECK(!decode_body(encode_body(many)).ok());
  const auto whole = encode_body(CallMessage{7, random_bytes(1000, 1)});
  for (std::size_t size = 0; size < whole.size(); size += 7)
    static_cast<void>(decode_body(std::span(whole).first(size)));
}

}  // namespace
}  // namespace weft::net
