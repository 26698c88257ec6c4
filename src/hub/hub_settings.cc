#include "hub/hub_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "base/limits.h"
#include "base/text.h"
#include "http/client/http_url.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::string_view kPublicHub = "https://huggingface.co";

// Returns the first of these variables that is set; "" if none is.
std::string first_of(const Variables& variables, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (auto value = variables(name); value && !value->empty()) return *value;
  return {};
}

bool is_true(std::string value) {
  std::ranges::transform(value, value.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Replaces $NAME and ${NAME}. The name of an unset variable stays in the text.
std::string with_variables(std::string_view text, const Variables& variables) {
  std::string out;
  while (!text.empty()) {
    const auto dollar = std::min(text.find('$'), text.size());
    out += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.empty()) break;
    const bool has_braces = text.size() > 1 && text[1] == '{';
    const std::size_t begin = has_braces ? 2 : 1;
    const auto name_end =
        std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_name_character);
    const auto end = has_braces ? text.find('}') : static_cast<std::size_t>(name_end - text.begin());
    const bool is_name = end != std::string_view::npos && end > begin;
    const auto value = is_name ? variables(std::string(text.substr(begin, end - begin))) : std::nullopt;
    const std::size_t length = is_name ? end + (has_braces ? 1 : 0) : 1;
    out += value ? std::string_view(*value) : text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

std::string expanded(std::string path, const Variables& variables) {
  if (path == "~" || path.starts_with("~/")) path.replace(0, 1, variables("HOME").value_or("~"));
  return with_variables(path, variables);
}

std::string token_path(const Variables& variables) {
  if (std::string path = first_of(variables, {"HF_TOKEN_PATH"}); !path.empty()) return expanded(path, variables);
  std::string home = first_of(variables, {"HF_HOME"});
  if (home.empty()) {
    home = first_of(variables, {"XDG_CACHE_HOME"});
    home = (home.empty() ? "~/.cache" : home) + "/huggingface";
  }
  return expanded(home, variables) + "/token";
}

std::string cleaned(std::string text) {
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n'; });
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Result<std::string> checked_token(std::string token, std::string_view where) {
  const auto is_bad = [](char c) { return c <= ' ' || c > '~'; };
  if (token.size() > limits::kHubTokenMax || std::ranges::any_of(token, is_bad))
    return Error{Errc::invalid, fmt::format("{}: expected a token of at most {} printable characters, got another text",
                                            where, limits::kHubTokenMax)};
  return token;
}

Result<std::string> read_token(const Variables& variables) {
  if (is_true(first_of(variables, {"HF_HUB_DISABLE_IMPLICIT_TOKEN"}))) return std::string();
  std::string token = cleaned(first_of(variables, {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}));
  if (!token.empty()) return checked_token(std::move(token), "HF_TOKEN");
  const std::string path = token_path(variables);
  WEFT_TRY(const auto bytes, if_there(read_file(path, limits::kHubTokenMax)));
  if (!bytes) return std::string();
  return checked_token(cleaned({reinterpret_cast<const char*>(bytes->data()), bytes->size()}), path);
}

}  // namespace

Variables process_variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Result<HubSettings> read_hub_settings(const Variables& variables) {
  HubSettings settings;
  settings.endpoint = first_of(variables, {"HF_ENDPOINT"});
  if (settings.endpoint.empty()) settings.endpoint = kPublicHub;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  auto url = parse_http_url(settings.endpoint);
  if (!url.ok()) return Error{Errc::invalid, fmt::format("HF_ENDPOINT: {}", url.error().message)};
  if (settings.endpoint.find_first_of("?#") != std::string::npos)
    return Error{Errc::invalid, "HF_ENDPOINT: expected a URL without a query and a fragment"};
  settings.origin = url->origin;
  settings.offline = is_true(first_of(variables, {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}));
  settings.ca = first_of(variables, {"CURL_CA_BUNDLE", "SSL_CERT_FILE"});
  settings.ca_directory = first_of(variables, {"SSL_CERT_DIR"});
  WEFT_TRY(settings.token, read_token(variables));
  return settings;
}

}  // namespace weft
