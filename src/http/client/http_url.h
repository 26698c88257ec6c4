// URLs of http and https, as libcurl reads them.
#pragma once

#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

struct HttpUrl {
  std::string text;     // absolute, without a fragment
  std::string origin;   // "https://hub.example:443": scheme and host in lower case, with the port
  std::string shown;    // for messages: without the query, which may hold a signature
  bool secure = false;  // https

  std::string_view host() const;  // "hub.example:443"
};

// Errc::invalid: not an absolute URL of http or https, with a user or password, or of more than limits::kHttpUrlMax
// bytes. The message says why, and does not repeat the text, which may hold a secret.
Result<HttpUrl> parse_http_url(std::string_view text);
// Resolves a reference that an answer from `base` contains: absolute, or relative to `base`. Errors as above.
Result<HttpUrl> resolve_http_url(const HttpUrl& base, std::string_view reference);

}  // namespace weft
