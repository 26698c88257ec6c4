#include "endpoint/hub_answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr const char* kJson = "application/json; charset=utf-8";
constexpr std::size_t kHostMax = 255;  // bytes

// The tree reports a fetch without a source as Errc::io.
bool may_succeed_later(Errc code) {
  return code == Errc::io || code == Errc::absent || code == Errc::unreachable || code == Errc::timed_out ||
         code == Errc::busy || code == Errc::no_space || code == Errc::cancelled;
}

// True for the name or the address of a host, with or without a port.
bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kHostMax &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:[]") ==
             std::string_view::npos;
}

bool is_json(const HttpRequest& request) {
  std::string type(request.field("Content-Type").value_or(""));
  std::ranges::transform(type, type.begin(), lower_ascii);
  return type.starts_with("application/json");
}

Result<std::vector<std::string>> paths_in_json(const std::string& body) {
  WEFT_TRY(const JsonValue value, JsonValue::parse(body, {limits::kHubDepthMax, limits::kHttpArgumentsMax}));
  const JsonValue* const paths = value.find("paths");
  const Error refused{Errc::invalid, "\"paths\": expected an array of texts"};
  if (paths == nullptr) return refused;
  std::vector<std::string> out;
  if (const std::string* const one = paths->text()) return out.push_back(*one), out;
  if (paths->array() == nullptr) return refused;
  for (const JsonValue& path : *paths->array()) {
    if (path.text() == nullptr) return refused;
    out.push_back(*path.text());
  }
  return out;
}

}  // namespace

HttpReply hub_json(std::string json) {
  return http_text(200, std::move(json), kJson);
}

HttpReply hub_refusal(int status, std::string_view code, std::string_view message) {
  JsonWriter json;
  json.begin_object().member("error", message).end_object();
  HttpReply reply = http_text(status, json.take(), kJson);
  if (!code.empty()) reply.fields.emplace_back("X-Error-Code", code);
  reply.fields.emplace_back("X-Error-Message", printable(message, limits::kHubErrorTextMax));
  return reply;
}

HttpReply hub_failure(const Error& error) {
  return hub_refusal(may_succeed_later(error.code) ? 503 : 500, "", error.message);
}

Result<std::vector<std::string>> named_paths(const HttpRequest& request) {
  if (is_json(request)) return paths_in_json(request.body);
  WEFT_TRY(const HttpFields form, parse_http_form(request.body));
  std::vector<std::string> paths;
  for (const auto& [name, value] : form)
    if (name == "paths") paths.push_back(value);
  return paths;
}

std::string next_page_link(const HttpRequest& request, const std::string& cursor) {
  std::string url;
  const bool is_tls = request.field("X-Forwarded-Proto") == "https";
  if (const auto host = request.field("Host"); host && is_host(*host))
    url = fmt::format("{}://{}", is_tls ? "https" : "http", *host);
  for (const std::string& segment : request.path.segments) url += fmt::format("/{}", percent_encoded(segment));
  url += fmt::format("?cursor={}", percent_encoded(cursor));
  for (const auto& [name, value] : request.arguments)
    if (name != "cursor") url += fmt::format("&{}={}", percent_encoded(name), percent_encoded(value));
  return fmt::format("<{}>; rel=\"next\"", url);
}

}  // namespace weft
