// The messages of a handshake as values. Decoding checks every rule of wire.fbs and handshake.h but the version: a
// handshake with another wire version is refused by the name of its node.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/session/handshake.h"
#include "net/session/secret.h"
#include "weft/cluster/transport.h"
#include "weft/result.h"

namespace weft::net {

struct HelloMessage {
  std::string node;
  Bytes32 key_id{};
  Bytes32 key{};
  std::uint64_t session = 0;
  EndpointAddress address;
  std::uint16_t version = kWireVersion;
};

struct WelcomeMessage {
  std::string node;
  Bytes32 key_id{};
  Bytes32 key{};
  std::uint64_t session = 0;
  Bytes32 proof{};
  std::uint16_t version = kWireVersion;
};

std::vector<std::byte> encode_hello(const HelloMessage& hello);
Result<HelloMessage> decode_hello(std::span<const std::byte> payload);
std::vector<std::byte> encode_welcome(const WelcomeMessage& welcome);
Result<WelcomeMessage> decode_welcome(std::span<const std::byte> payload);
// Errc::unsupported: the node has another wire version.
Status check_version(std::uint16_t version, const std::string& node);

}  // namespace weft::net
