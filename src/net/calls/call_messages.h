// The messages in the frames of a session, as values. Decoding checks every rule of wire.fbs and exchange.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "net/session/secret.h"
#include "weft/cluster/transport.h"
#include "weft/result.h"

namespace weft::net {

struct CallMessage {
  std::uint64_t id = 0;
  std::vector<std::byte> request;
};
struct AnswerMessage {
  std::uint64_t id = 0;
  std::vector<std::byte> head;
  std::optional<Bytes32> head_hash;  // if set, the first window holds the head
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

inline constexpr std::size_t kWindowMessageBytes = 40;  // encoded size of a window, at most

// Returns at most kPayloadBytesMax bytes if requests and heads respect the limits of exchange.h. Error texts are cut.
std::vector<std::byte> encode_body(const CallBody& body);
Result<CallBody> decode_body(std::span<const std::byte> payload);

}  // namespace weft::net
