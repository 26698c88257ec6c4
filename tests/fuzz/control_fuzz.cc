// Bytes from the control socket, which any local program can send. The first byte determines how the rest is split.
#include "control/message_reader.h"

#include <algorithm>

#include "base/limits.h"
#include "fuzzing.h"

namespace {

using namespace weft;

// A parsed message encodes and parses to the same message.
void require_again(const control::Message& message) {
  if (message.kind == control::MessageKind::error) return;
  const auto frame = control::encode_message({message.id, message.kind, message.name, {}, message.fd_count});
  fuzzing::require(frame.ok(), "what was parsed can be encoded");
  const auto again = control::parse_message(std::string_view(*frame).substr(control::kLengthBytes));
  fuzzing::require(again.ok() && again->kind == message.kind && again->id == message.id && again->name == message.name,
                   "and is the same");
}

// Reads all messages of the stream. False if the stream violates the protocol.
bool take(control::MessageReader& reader) {
  for (;;) {
    const auto message = reader.next();
    if (!message.ok()) return false;
    if (!*message) return true;
    fuzzing::require((*message)->body.is_object(), "a body is an object");
    fuzzing::require((*message)->fds.size() == (*message)->fd_count, "its descriptors are there");
    require_again(**message);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const std::size_t step = std::size_t{data[0]} + 1;
  control::MessageReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    reader.feed(bytes.subspan(at, std::min(step, bytes.size() - at)), {});
    if (!take(reader)) break;
  }
  return 0;
}
