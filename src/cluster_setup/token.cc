#include "cluster_setup/token.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cluster_setup/crypto.h"
#include "registry/etcd/base64.h"

namespace weft::setup {
namespace {

constexpr std::string_view kPrefix = "weft1.";
constexpr std::string_view kPurpose = "weft join token 1";
constexpr std::size_t kCheckBytes = 4;
constexpr std::size_t kFixedBytes = 32 + 16 + 8 + 2 + 32 + kCheckBytes;

template <class Number>
void put_number(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) out += static_cast<char>(number >> (8 * i) & 0xffU);
}

template <class Bytes>
void put_bytes(std::string& out, const Bytes& bytes) {
  for (const auto byte : bytes) out += static_cast<char>(byte);
}

// Takes fields from the front of bytes whose length the caller has checked.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}
  template <class Bytes>
  void bytes(Bytes& into) {
    for (auto& byte : into) byte = static_cast<typename Bytes::value_type>(next());
  }
  template <class Number>
  void number(Number& into) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof into; ++i) value |= std::uint64_t{next()} << (8 * i);
    into = static_cast<Number>(value);
  }
  std::string_view rest() const { return left_; }

 private:
  unsigned char next() {
    const char first = left_.front();
    left_.remove_prefix(1);
    return static_cast<unsigned char>(first);
  }
  std::string_view left_;
};

std::string signed_part(const Token& token) {
  std::string bytes(kPurpose);
  put_bytes(bytes, token.key.bytes);
  put_bytes(bytes, token.id);
  put_number(bytes, token.expires_s);
  put_number(bytes, token.uses);
  return bytes + token.endpoint;
}

std::string check_of(std::string_view bytes) {
  const Digest digest = sha256(std::as_bytes(std::span(bytes)));
  std::string check;
  put_bytes(check, std::span(digest.bytes).first(kCheckBytes));
  return check;
}

std::string to_url_alphabet(std::string text) {
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

// Returns text that from_base64() reads, or refuses.
std::string from_url_alphabet(std::string text) {
  if (text.find_first_of("+/=") != std::string::npos) return "?";
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

Error no_token() {
  return {Errc::invalid, "TOKEN: expected a token as `weft cluster init` prints it; this one was cut off or mistyped"};
}

}  // namespace

Result<Token> make_token(const TokenWish& wish, const TokenKey& key) {
  WEFT_CHECK(parse_place(wish.endpoint));
  Token token{wish.key, {}, wish.expires_s, wish.uses, {}, wish.endpoint};
  random_fill(std::as_writable_bytes(std::span(token.id)));
  token.secret = hmac_sha256(key, signed_part(token));
  return token;
}

bool is_made_by(const Token& token, const TokenKey& key) {
  return equals_in_constant_time(hmac_sha256(key, signed_part(token)), token.secret);
}

std::string token_text(const Token& token) {
  std::string bytes;
  put_bytes(bytes, token.key.bytes);
  put_bytes(bytes, token.id);
  put_number(bytes, token.expires_s);
  put_number(bytes, token.uses);
  put_bytes(bytes, token.secret.bytes);
  bytes += token.endpoint;
  bytes += check_of(bytes);
  return std::string(kPrefix) + to_url_alphabet(to_base64(std::as_bytes(std::span(bytes))));
}

Result<Token> parse_token(std::string_view text) {
  text = trimmed(text, " \t\r\n");
  if (!text.starts_with(kPrefix) || text.size() > limits::kJoinTokenMax) return no_token();
  const auto decoded = from_base64(from_url_alphabet(std::string(text.substr(kPrefix.size()))));
  if (!decoded || decoded->size() <= kFixedBytes) return no_token();
  const std::string_view bytes(reinterpret_cast<const char*>(decoded->data()), decoded->size());
  const std::string_view checked = bytes.substr(0, bytes.size() - kCheckBytes);
  if (bytes.substr(checked.size()) != check_of(checked)) return no_token();
  Token token;
  FieldReader reader(checked);
  reader.bytes(token.key.bytes);
  reader.bytes(token.id);
  reader.number(token.expires_s);
  reader.number(token.uses);
  reader.bytes(token.secret.bytes);
  token.endpoint = reader.rest();
  if (token.uses == 0) return no_token();
  WEFT_CHECK(parse_place(token.endpoint));
  return token;
}

Result<JoinPlace> parse_place(std::string_view endpoint) {
  const auto colon = endpoint.rfind(':');
  std::string_view host = endpoint.substr(0, colon);
  const std::uint64_t port = colon == std::string_view::npos ? 0 : parse_u64(endpoint.substr(colon + 1)).value_or(0);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  const auto is_ipv6 = [&](char c) { return is_plain(c) || c == ':' || c == '%'; };
  const bool is_host = !host.empty() && host.front() != '-' && host.size() <= limits::kJoinHostMax &&
                       (bracketed ? host.find(':') != std::string_view::npos && std::ranges::all_of(host, is_ipv6)
                                  : std::ranges::all_of(host, is_plain));
  if (is_host && port > 0 && port <= std::numeric_limits<std::uint16_t>::max())
    return JoinPlace{std::string(host), static_cast<std::uint16_t>(port)};
  return Error{Errc::invalid, fmt::format("expected HOST:PORT or [HOST]:PORT, got \"{}\"", printable(endpoint))};
}

std::string place_text(const JoinPlace& place) {
  return place.host.find(':') == std::string::npos ? fmt::format("{}:{}", place.host, place.port)
                                                   : fmt::format("[{}]:{}", place.host, place.port);
}

}  // namespace weft::setup
