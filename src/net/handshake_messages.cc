#include "net/handshake_messages.h"

#include <flatbuffers/flatbuffers.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/limits.h"
#include "net/handshake.h"
#include "wire_generated.h"

namespace weft::net {
namespace {

wire::Bytes32 packed(const Bytes32& bytes) {
  std::array<std::uint8_t, 32> out{};
  std::transform(bytes.begin(), bytes.end(), out.begin(), [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return wire::Bytes32(out);
}

Bytes32 unpacked(const wire::Bytes32& bytes) {
  Bytes32 out{};
  for (unsigned i = 0; i < out.size(); ++i) out.at(i) = static_cast<std::byte>(bytes.bytes()->Get(i));
  return out;
}

std::vector<std::byte> finished(flatbuffers::FlatBufferBuilder& builder) {
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

// The payload as a table, in memory that is aligned for it.
template <class Table>
class Decoded {
 public:
  static Result<Decoded> make(std::span<const std::byte> payload, std::string_view what) {
    const Error none{Errc::invalid, fmt::format("a handshake: {} bytes that are no {}", payload.size(), what)};
    if (payload.size() < sizeof(flatbuffers::uoffset_t) || payload.size() > kPayloadBytesMax) return none;
    Decoded made;
    made.memory_.resize((payload.size() + 7) / 8);
    std::memcpy(made.memory_.data(), payload.data(), payload.size());
    flatbuffers::Verifier verifier(made.bytes(), made.memory_.size() * sizeof(std::uint64_t), 4, 4);
    if (!verifier.VerifyBuffer<Table>(nullptr)) return none;
    return made;
  }
  const Table* operator->() const { return flatbuffers::GetRoot<Table>(bytes()); }

 private:
  const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(memory_.data()); }
  std::vector<std::uint64_t> memory_;
};

// What hello and welcome have in common.
template <class Table>
Status check_opening(const Table& message, std::string_view what) {
  if (message->version() != kWireVersion)
    return Error{Errc::unsupported, fmt::format("a handshake: expected wire version {}, got {} in a {}", kWireVersion,
                                                message->version(), what)};
  const std::size_t node = message->node()->size();
  if (node == 0 || node > limits::kNodeIdMax)
    return Error{Errc::invalid,
                 fmt::format("a handshake: expected a node id of 1 to {} bytes, got {}", limits::kNodeIdMax, node)};
  if (message->session() == 0) return Error{Errc::invalid, fmt::format("a handshake: a {} without a session", what)};
  return {};
}

}  // namespace

std::vector<std::byte> encode_hello(const HelloMessage& hello) {
  flatbuffers::FlatBufferBuilder builder;
  const auto node = builder.CreateString(hello.node);
  const auto address =
      builder.CreateVector(reinterpret_cast<const std::uint8_t*>(hello.address.data()), hello.address.size());
  const auto nonce = packed(hello.nonce);
  const auto key = packed(hello.key);
  builder.Finish(wire::CreateHello(builder, kWireVersion, node, &nonce, &key, hello.session, address));
  return finished(builder);
}

Result<HelloMessage> decode_hello(std::span<const std::byte> payload) {
  WEFT_TRY(const auto table, Decoded<wire::Hello>::make(payload, "hello"));
  WEFT_CHECK(check_opening(table, "hello"));
  const std::size_t address = table->address()->size();
  if (address == 0 || address > limits::kEndpointAddressMax)
    return Error{Errc::invalid, fmt::format("a handshake: expected an address of 1 to {} bytes, got {}",
                                            limits::kEndpointAddressMax, address)};
  const auto bytes = std::as_bytes(std::span(table->address()->data(), address));
  return HelloMessage{table->node()->str(), unpacked(*table->nonce()), unpacked(*table->key()), table->session(),
                      EndpointAddress(bytes.begin(), bytes.end())};
}

std::vector<std::byte> encode_welcome(const WelcomeMessage& welcome) {
  flatbuffers::FlatBufferBuilder builder;
  const auto node = builder.CreateString(welcome.node);
  const auto nonce = packed(welcome.nonce);
  const auto key = packed(welcome.key);
  const auto proof = packed(welcome.proof);
  builder.Finish(wire::CreateWelcome(builder, kWireVersion, node, &nonce, &key, welcome.session, &proof));
  return finished(builder);
}

Result<WelcomeMessage> decode_welcome(std::span<const std::byte> payload) {
  WEFT_TRY(const auto table, Decoded<wire::Welcome>::make(payload, "welcome"));
  WEFT_CHECK(check_opening(table, "welcome"));
  return WelcomeMessage{table->node()->str(), unpacked(*table->nonce()), unpacked(*table->key()), table->session(),
                        unpacked(*table->proof())};
}

std::vector<std::byte> encode_confirm(const Bytes32& proof) {
  flatbuffers::FlatBufferBuilder builder;
  const auto packed_proof = packed(proof);
  builder.Finish(wire::CreateConfirm(builder, &packed_proof));
  return finished(builder);
}

Result<Bytes32> decode_confirm(std::span<const std::byte> payload) {
  WEFT_TRY(const auto table, Decoded<wire::Confirm>::make(payload, "confirmation"));
  return unpacked(*table->proof());
}

}  // namespace weft::net
