// A transport's address as text, for the registry and for people: "10.0.0.7:4711", "[fe80::1]:4711", or "x" and hex
// digits for what is no internet address.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/transport.h"

namespace weft {

std::string endpoint_text(std::span<const std::byte> address);
// Nothing for what is none, nor for hex digits of an address that endpoint_text() writes otherwise.
std::optional<EndpointAddress> parse_endpoint(std::string_view text);

// What weftd's `listen` says: "", "HOST", "HOST:PORT", "[HOST]:PORT". Without a host the loopback; port 0: any.
struct ListenAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};
Result<ListenAddress> parse_listen(std::string_view text);

}  // namespace weft
