// Frames from the network: the header, the handshake messages that any sender can forge, and the messages of a session.
#include "net/session/frame.h"

#include "fuzzing.h"
#include "net/calls/call_messages.h"
#include "net/session/handshake.h"
#include "net/session/handshake_messages.h"

namespace {

using namespace weft;

net::Session session() {
  const net::CipherState cipher{net::Secret()};
  return net::Session({1, 2, "peer", {}}, cipher, cipher);
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
  if (const auto body = net::decode_body(payload); body.ok())
    fuzzing::require(net::decode_body(net::encode_body(*body)).ok(), "a message encodes to a message");
  if (!frame.ok()) return 0;
  static const net::Self self{net::KeyRing{net::Secret()}, "us", EndpointAddress(16), 1};
  static_cast<void>(net::Answerer::answer(self, *frame));
  static_cast<void>(net::key_named_by(*frame, self.keys));
  net::NNpsk0 noise(net::NNpsk0::Role::responder, frame->authenticated, net::Secret());
  static_cast<void>(noise.read(frame->payload));
  static const net::Caller caller(self);
  fuzzing::require(!caller.welcomed(*frame).ok(), "nobody guesses a proof");
  net::Session receiving = session();
  fuzzing::require(!receiving.open(*frame).ok(), "nobody guesses a tag");
  return 0;
}
