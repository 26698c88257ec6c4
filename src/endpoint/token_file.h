// The token that clients of the endpoint have to send.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// A token is kept as its SHA-256, so that memory of the process does not show it.
class HubToken {
 public:
  // Reads the first line of a file that only its owner, this user or root, can read. Errc::permission: others can read
  // or write it, or own it. Errc::invalid: not a file, or no token of printable characters. No message has the token.
  static Result<HubToken> read(const std::string& path);

  // True for the value of a field Authorization with this token. The duration does not depend on the bytes that
  // are equal.
  bool opens(std::optional<std::string_view> authorization) const;

 private:
  explicit HubToken(const Digest& digest) : digest_(digest) {}
  Digest digest_;
};

}  // namespace weft
