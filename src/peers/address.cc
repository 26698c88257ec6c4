#include "peers/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

template <class Sockaddr>
std::optional<Sockaddr> as(std::span<const std::byte> address, int family) {
  Sockaddr out{};
  if (address.size() != sizeof out) return {};
  std::memcpy(&out, address.data(), sizeof out);
  sa_family_t got = 0;
  std::memcpy(&got, &out, sizeof got);
  return got == family ? std::optional(out) : std::nullopt;
}

template <class Sockaddr>
EndpointAddress bytes_of(const Sockaddr& address) {
  const auto bytes = std::as_bytes(std::span(&address, 1));
  return {bytes.begin(), bytes.end()};
}

std::string host_text(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, address, text.data(), text.size()) == nullptr ? "" : text.data();
}

// Parses "HOST:PORT", "[HOST]:PORT", or a host alone.
std::optional<ListenAddress> split_host(std::string_view text) {
  ListenAddress out;
  std::string_view port;
  const bool bracketed = text.starts_with('[');
  const std::size_t end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && end == std::string_view::npos) return {};
  const bool bare = end == std::string_view::npos || (!bracketed && text.find(':', end + 1) != std::string_view::npos);
  const std::string_view host = bare ? text : text.substr(bracketed ? 1 : 0, bracketed ? end - 1 : end);
  if (!bare) port = text.substr(bracketed ? end + 1 : end);
  if (!port.empty()) {
    const auto number = port.starts_with(':') ? parse_u64(port.substr(1)) : std::nullopt;
    if (!number || *number > std::numeric_limits<std::uint16_t>::max()) return {};
    out.port = static_cast<std::uint16_t>(*number);
  }
  if (!host.empty()) out.host = host;
  return out;
}

std::optional<EndpointAddress> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0 || digits.size() / 2 > limits::kEndpointAddressMax) return {};
  EndpointAddress out;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = hex_value(digits[i]);
    const int low = hex_value(digits[i + 1]);
    if (high < 0 || low < 0) return {};
    out.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

// Returns the parts between commas.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(',');
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string endpoint_text(std::span<const std::byte> address) {
  if (const auto four = as<sockaddr_in>(address, AF_INET))
    return fmt::format("{}:{}", host_text(AF_INET, &four->sin_addr), ntohs(four->sin_port));
  if (const auto six = as<sockaddr_in6>(address, AF_INET6); six && six->sin6_scope_id == 0)
    return fmt::format("[{}]:{}", host_text(AF_INET6, &six->sin6_addr), ntohs(six->sin6_port));
  std::string out = "x";
  for (const std::byte one : address) out += fmt::format("{:02x}", std::to_integer<unsigned>(one));
  return out;
}

std::optional<EndpointAddress> parse_endpoint(std::string_view text) {
  if (text.starts_with('x')) {
    const auto address = from_hex(text.substr(1));
    return address && endpoint_text(*address) == text ? address : std::nullopt;
  }
  const auto parts = split_host(text);
  if (!parts || parts->port == 0) return {};
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(parts->port);
  if (::inet_pton(AF_INET, parts->host.c_str(), &four.sin_addr) == 1) return bytes_of(four);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(parts->port);
  if (::inet_pton(AF_INET6, parts->host.c_str(), &six.sin6_addr) == 1) return bytes_of(six);
  return {};
}

std::string providers_text(std::span<const Endpoint> endpoints) {
  std::string out;
  for (const Endpoint& one : endpoints) out += (out.empty() ? "" : ",") + one.provider;
  return out;
}

std::string addresses_text(std::span<const Endpoint> endpoints) {
  std::string out;
  for (const Endpoint& one : endpoints) out += (out.empty() ? "" : ",") + endpoint_text(one.address);
  return out;
}

std::optional<Member> reached_by(Member member, std::span<const Endpoint> own) {
  if (member.provider.empty()) return member;
  const auto providers = parts_of(member.provider);
  const auto addresses = parts_of(member.address);
  for (const Endpoint& one : own) {
    const auto found = std::ranges::find(providers, one.provider);
    const auto at = static_cast<std::size_t>(found - providers.begin());
    if (at >= std::min(providers.size(), addresses.size())) continue;
    std::string address(addresses[at]);
    member.provider = one.provider;
    member.address = std::move(address);
    return member;
  }
  return {};
}

Result<ListenAddress> parse_listen(std::string_view text) {
  if (auto parsed = split_host(text)) return *std::move(parsed);
  return Error{Errc::invalid, fmt::format("expected HOST, HOST:PORT or [HOST]:PORT, got \"{}\"", printable(text))};
}

}  // namespace weft
