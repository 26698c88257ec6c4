#include "net/session/handshake_messages.h"

#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
#include "net/session/wire_tables.h"

namespace weft::net {
namespace {

// Checks the fields that hello and welcome share.
template <class Table>
Status check_opening(const Table& message, std::string_view what) {
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
  const auto address = packed(builder, hello.address);
  const auto key_id = packed(hello.key_id);
  const auto key = packed(hello.key);
  builder.Finish(wire::CreateHello(builder, hello.version, node, &key_id, &key, hello.session, address));
  return finished(builder);
}

Result<HelloMessage> decode_hello(std::span<const std::byte> payload) {
  WEFT_TRY(const auto table, Decoded<wire::Hello>::make(payload, "hello"));
  WEFT_CHECK(check_opening(table, "hello"));
  const std::size_t address = table->address()->size();
  if (address == 0 || address > limits::kEndpointAddressMax)
    return Error{Errc::invalid, fmt::format("a handshake: expected an address of 1 to {} bytes, got {}",
                                            limits::kEndpointAddressMax, address)};
  return HelloMessage{table->node()->str(), unpacked(*table->key_id()),  unpacked(*table->key()),
                      table->session(),     unpacked(*table->address()), table->version()};
}

std::vector<std::byte> encode_welcome(const WelcomeMessage& welcome) {
  flatbuffers::FlatBufferBuilder builder;
  const auto node = builder.CreateString(welcome.node);
  const auto key_id = packed(welcome.key_id);
  const auto key = packed(welcome.key);
  const auto proof = packed(welcome.proof);
  builder.Finish(wire::CreateWelcome(builder, welcome.version, node, &key_id, &key, welcome.session, &proof));
  return finished(builder);
}

Result<WelcomeMessage> decode_welcome(std::span<const std::byte> payload) {
  WEFT_TRY(const auto table, Decoded<wire::Welcome>::make(payload, "welcome"));
  WEFT_CHECK(check_opening(table, "welcome"));
  return WelcomeMessage{table->node()->str(), unpacked(*table->key_id()), unpacked(*table->key()),
                        table->session(),     unpacked(*table->proof()),  table->version()};
}

Status check_version(std::uint16_t version, const std::string& node) {
  if (version == kWireVersion) return {};
  return Error{Errc::unsupported, fmt::format("a handshake: node {} has wire version {}, this node has {}",
                                              printable(node), version, kWireVersion)};
}

}  // namespace weft::net
