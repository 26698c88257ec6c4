// What the frames of a session carry, as values. Decoding checks all that wire.fbs and exchange.h promise.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "net/session/secret.h"
#include "weft/result.h"
#include "weft/transport.h"

namespace weft::net {

struct CallMessage {
  std::uint64_t id = 0;
  std::vector<std::byte> request;
};
struct AnswerMessage {
  std::uint64_t id = 0;
  std::vector<std::byte> head;
  std::optional<Bytes32> head_hash;  // then the head is what the first window holds
  std::vector<RemoteWindow> windows;
};
struct FailureMessage {
  std::uint64_t id = 0;
  Error error;
};
struct DoneMessage {
  std::uint64_t id = 0;
  std::uint64_t read_bytes = 0;
};
struct AskMessage {
  std::uint64_t id = 0;
  std::uint64_t number = 0;
  bool has_answer = false;
};
enum class CallState : std::uint8_t { unknown, queued, in_work, answered };
struct KnownMessage {
  std::uint64_t id = 0;
  std::uint64_t number = 0;
  CallState state = CallState::unknown;
};
using CallBody = std::variant<CallMessage, AnswerMessage, FailureMessage, DoneMessage, AskMessage, KnownMessage>;

inline constexpr std::size_t kWindowMessageBytes = 40;  // that a window takes in an answer, at most

// At most kPayloadBytesMax bytes, when requests and heads are within exchange.h's bounds; messages of errors are cut.
std::vector<std::byte> encode_body(const CallBody& body);
Result<CallBody> decode_body(std::span<const std::byte> payload);

}  // namespace weft::net
