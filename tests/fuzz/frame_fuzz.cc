// Frames from the network: the header, the handshake messages that any sender can forge, and the messages of a session.
#include "net/session/frame.h"

#include "fuzzing.h"
#include "net/calls/call_messages.h"
#include "net/session/handshake.h"
#include "net/session/handshake_messages.h"

namespace {

using namespace weft;

net::Session session() {
  return net::Session({1, 2, "peer", {}}, net::Secret(), net::Secret());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto frame = net::parse_frame(bytes);
  const auto payload = frame.ok() ? frame->payload : bytes;
  if (const auto hello = net::decode_hello(payload); hello.ok())
    fuzzing::require(net::decode_hello(net::encode_hello(*hello)).ok(), "a hello encodes to a hello");
  if (const auto welcome = net::decode_welcome(payload); welcome.ok())
    fuzzing::require(net::decode_welcome(net::encode_welcome(*welcome)).ok(), "a welcome encodes to a welcome");
  static_cast<void>(net::decode_confirm(payload));
  if (const auto body = net::decode_body(payload); body.ok())
    fuzzing::require(net::decode_body(net::encode_body(*body)).ok(), "a message encodes to a message");
  if (!frame.ok()) return 0;
  const net::Self self{net::Secret(), "us", EndpointAddress(16), 1};
  static_cast<void>(net::Answerer::answer(self, *frame));
  static const net::Caller caller(self);
  fuzzing::require(!caller.welcomed(*frame).ok(), "nobody guesses a proof");
  net::Session receiving = session();
  fuzzing::require(!receiving.open(*frame).ok(), "nobody guesses a tag");
  return 0;
}
