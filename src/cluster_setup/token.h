// A join token: one word that lets another machine join a cluster.
//
// The text is "weft1." and the Base64 (RFC 4648, URL alphabet, without padding) of these bytes; numbers are
// little-endian:
//
//   key        32  SHA-256 of the public key of the cluster's authority: the node at `endpoint` proves that it has it
//   id         16  random; the registry counts the uses of the token by it
//   expires     8  seconds since 1970, by the clock of the node that made the token
//   uses        2  from 1
//   secret     32  HMAC-SHA-256 of all other fields under the token key of the first node
//   endpoint    n  HOST:PORT, or [HOST]:PORT
//   check       4  the first bytes of the SHA-256 of all bytes before: a token that was cut off differs
//
// So the first node needs no list of its tokens: the secret shows that it has made the token. A reader that lacks the
// token key can decode the token, and cannot make one. Pure; the text is hostile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/content.h"
#include "weft/result.h"

namespace weft::setup {

// The key of the first node that makes and proves tokens.
using TokenKey = Digest;
using TokenId = std::array<std::uint8_t, 16>;

struct Token {
  Digest key{};  // of the authority
  TokenId id{};
  std::uint64_t expires_s = 0;
  std::uint16_t uses = 1;
  Digest secret{};
  std::string endpoint;
};

struct TokenWish {
  Digest key{};
  std::string endpoint;
  std::uint64_t expires_s = 0;
  std::uint16_t uses = 1;
};
Result<Token> make_token(const TokenWish& wish, const TokenKey& key);  // with a random id
// True if a holder of `key` has made the token. Takes the same time for every token.
bool is_made_by(const Token& token, const TokenKey& key);

std::string token_text(const Token& token);
// Errc::invalid: the text is no token, or was cut off or mistyped. The message does not repeat it.
Result<Token> parse_token(std::string_view text);

// The parts of an endpoint. Errc::invalid: it is not HOST:PORT or [HOST]:PORT, with a port from 1.
struct JoinPlace {
  std::string host;
  std::uint16_t port = 0;
};
Result<JoinPlace> parse_place(std::string_view endpoint);
std::string place_text(const JoinPlace& place);  // with brackets round an IPv6 address

}  // namespace weft::setup
