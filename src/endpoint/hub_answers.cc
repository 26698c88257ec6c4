#include "endpoint/hub_answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"
#include "weft/names.h"

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

// Clients read the time with a fraction.
std::string hub_time(std::uint64_t time_ns) {
  std::string text = utc_time(time_ns);
  if (text.ends_with('Z')) text.replace(text.size() - 1, 1, ".000Z");
  return text;
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

HttpReply no_file(std::string_view path, std::string_view where, const std::string& commit) {
  HttpReply reply = hub_refusal(404, "EntryNotFound", fmt::format("no file {} in {}", printable(path), where));
  reply.fields.emplace_back("X-Repo-Commit", commit);
  return reply;
}

HttpFields file_fields(const ServedFile& file, std::string etag, const std::string& commit) {
  return {{"ETag", std::move(etag)}, {"X-Repo-Commit", commit}, {"X-Linked-Size", std::to_string(file.size)}};
}

void write_repository(JsonWriter& json, const VersionRow& version, const std::string& commit) {
  const bool is_dataset = version.kind == VersionKind::dataset;
  json.member("id", version.model_name);
  if (!is_dataset) json.member("modelId", version.model_name);
  if (const auto author = split_name(version.model_name).first; !author.empty()) json.member("author", author);
  json.member("sha", commit).member("lastModified", hub_time(version.time_ns));
  json.member("createdAt", hub_time(version.time_ns)).member("private", version.source.access == "private");
  json.key("gated");
  version.source.access == "gated" ? json.value("auto") : json.value(false);
  json.member("disabled", false).member("downloads", 0).member("likes", 0).key("tags").begin_array().end_array();
}

void write_ref(JsonWriter& json, std::string_view name, std::string_view area, const std::string& commit) {
  json.begin_object().member("name", name).member("ref", fmt::format("refs/{}/{}", area, name));
  json.member("targetCommit", commit).end_object();
}

bool is_true_argument(const HttpRequest& request, std::string_view name) {
  const auto argument = request.argument(name);
  return argument && (*argument == "1" || std::ranges::equal(*argument, std::string_view("true"), {}, lower_ascii));
}

HttpReply with_etag(const HttpRequest& request, HttpReply reply) {
  const auto* const text = std::get_if<std::string>(&reply.body);
  if (reply.status != 200 || text == nullptr || request.method == HttpRequest::Method::post) return reply;
  const Digest digest = sha256(std::as_bytes(std::span(*text)));
  const std::string etag = fmt::format("\"{}\"", to_hex(digest).substr(0, kCommitDigits));
  reply.fields.emplace_back("ETag", etag);
  return request.has_content(etag) ? http_not_modified(std::move(reply.fields)) : std::move(reply);
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
