// Addresses of transports as text, for the registry and for people: "10.0.0.7:4711", "[fe80::1]:4711", or "x" and hex
// digits for any other address. A node with several endpoints has comma-separated lists: of providers, "verbs,net", and
// of as many addresses.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/cluster/exchange.h"
#include "weft/cluster/registry.h"

namespace weft {

std::string endpoint_text(std::span<const std::byte> address);
// Nothing if the text is no address, or is hex digits of an address that endpoint_text() writes otherwise.
std::optional<EndpointAddress> parse_endpoint(std::string_view text);

std::string providers_text(std::span<const Endpoint> endpoints);
std::string addresses_text(std::span<const Endpoint> endpoints);
// Returns the member as this node can reach it: with the first provider of `own` that the member has too, and the
// address for that provider. A member without any provider is returned unchanged. Nothing if they have no provider in
// common.
std::optional<Member> reached_by(Member member, std::span<const Endpoint> own);

// The setting `listen` of weftd: "", "HOST", "HOST:PORT", "[HOST]:PORT". The default host is the loopback; port 0: any.
struct ListenAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};
Result<ListenAddress> parse_listen(std::string_view text);

}  // namespace weft
