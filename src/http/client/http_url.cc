#include "http/client/http_url.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "http/client/curl.h"

namespace weft {
namespace {

constexpr std::size_t kShownMax = 300;

Error refused_url(std::string_view why) {
  return Error{Errc::invalid, fmt::format("expected a URL http://HOST or https://HOST, got one {}", why)};
}

// Returns a part; "" if the URL has none.
std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  return CurlText(text).get();
}

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  return text;
}

Status set_url(CURLU* url, std::string_view text, unsigned flags) {
  if (url == nullptr) return Error{Errc::internal, "libcurl gives no URL"};
  if (text.size() > limits::kHttpUrlMax) return refused_url(fmt::format("of more than {} bytes", limits::kHttpUrlMax));
  if (text.find('\0') != std::string_view::npos) return refused_url("with a NUL");
  const CURLUcode code =
      curl_url_set(url, CURLUPART_URL, std::string(text).c_str(), flags | CURLU_DISALLOW_USER | CURLU_PATH_AS_IS);
  if (code != CURLUE_OK) return refused_url(fmt::format("that libcurl refuses ({})", curl_url_strerror(code)));
  return {};
}

Result<HttpUrl> finished(CURLU* url) {
  curl_url_set(url, CURLUPART_FRAGMENT, nullptr, 0);
  const std::string scheme = in_lower_case(part_of(url, CURLUPART_SCHEME));
  if (scheme != "http" && scheme != "https") return refused_url(fmt::format("of \"{}\"", printable(scheme)));
  HttpUrl out;
  out.text = part_of(url, CURLUPART_URL);
  const std::string host = in_lower_case(part_of(url, CURLUPART_HOST));
  if (host.empty() || out.text.empty()) return refused_url("without a host");
  if (out.text.size() > limits::kHttpUrlMax)
    return refused_url(fmt::format("of more than {} bytes", limits::kHttpUrlMax));
  out.secure = scheme == "https";
  out.origin = fmt::format("{}://{}:{}", scheme, host, part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT));
  out.shown = printable(std::string_view(out.text).substr(0, out.text.find('?')), kShownMax);
  return out;
}

}  // namespace

std::string_view HttpUrl::host() const {
  return std::string_view(origin).substr(origin.find("//") + 2);
}

Result<HttpUrl> parse_http_url(std::string_view text) {
  const CurlUrl url(curl_url());
  WEFT_CHECK(set_url(url.get(), text, 0));
  return finished(url.get());
}

Result<HttpUrl> resolve_http_url(const HttpUrl& base, std::string_view reference) {
  const CurlUrl url(curl_url());
  WEFT_CHECK(set_url(url.get(), base.text, 0));
  WEFT_CHECK(set_url(url.get(), reference, CURLU_URLENCODE | CURLU_ALLOW_SPACE));
  return finished(url.get());
}

}  // namespace weft
