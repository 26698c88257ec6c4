#include "http/message.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

bool is_same_name(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, {}, lower_ascii, lower_ascii);
}

// A blank may be a plus.
Result<std::string> argument_decoded(std::string text) {
  std::ranges::replace(text, '+', ' ');
  auto decoded = percent_decoded(text);
  if (decoded.ok()) return decoded;
  return Error{Errc::invalid, fmt::format("argument: {}", decoded.error().message)};
}

// The bytes from `first` to `last`, which is included.
HttpPart range_between(std::uint64_t first, std::uint64_t last, std::uint64_t size) {
  if (first >= size) return {HttpPart::Kind::unsatisfiable, 0, 0, size};
  return {HttpPart::Kind::range, first, std::min(last, size - 1) - first + 1, size};
}

HttpPart last_bytes(std::uint64_t length, std::uint64_t size) {
  if (length == 0) return {HttpPart::Kind::unsatisfiable, 0, 0, size};
  if (size == 0) return {HttpPart::Kind::whole, 0, 0, 0};  // no Content-Range names an empty range
  return {HttpPart::Kind::range, size - std::min(length, size), std::min(length, size), size};
}

// A position past the largest number is past the end of any content.
std::uint64_t position(std::string_view digits) {
  return parse_u64(digits).value_or(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace

Result<HttpPath> parse_http_path(std::string_view raw) {
  if (!raw.starts_with('/')) return Error{Errc::invalid, "path: expected one that begins with /"};
  const auto slashes = static_cast<std::size_t>(std::ranges::count(raw, '/'));
  if (slashes > limits::kHttpSegmentsMax)
    return Error{Errc::invalid, fmt::format("path: expected at most {} segments", limits::kHttpSegmentsMax)};
  HttpPath path;
  for (const std::string_view piece : split(raw.substr(1), '/')) {
    auto segment = percent_decoded(piece);
    if (!segment.ok()) return Error{Errc::invalid, fmt::format("path: {}", segment.error().message)};
    path.text += '/';
    path.text += *segment;
    path.segments.push_back(*std::move(segment));
  }
  for (const std::string_view name : split(path.text, '/'))
    if (name == "." || name == "..") return Error{Errc::invalid, "path: expected no . or .."};
  return path;
}

Result<HttpFields> decode_http_arguments(const HttpFields& raw) {
  if (raw.size() > limits::kHttpArgumentsMax)
    return Error{Errc::invalid,
                 fmt::format("expected at most {} arguments, got {}", limits::kHttpArgumentsMax, raw.size())};
  HttpFields arguments;
  arguments.reserve(raw.size());
  for (const auto& [raw_name, raw_value] : raw) {
    WEFT_TRY(std::string name, argument_decoded(raw_name));
    WEFT_TRY(std::string value, argument_decoded(raw_value));
    arguments.emplace_back(std::move(name), std::move(value));
  }
  return arguments;
}

Result<HttpFields> parse_http_form(std::string_view form) {
  HttpFields raw;
  for (const std::string_view piece : split(form, '&')) {
    if (piece.empty()) continue;
    if (raw.size() > limits::kHttpArgumentsMax) break;
    const auto equals = std::min(piece.find('='), piece.size());
    raw.emplace_back(piece.substr(0, equals), piece.substr(std::min(equals + 1, piece.size())));
  }
  return decode_http_arguments(raw);
}

HttpPart parse_http_range(std::string_view range, std::uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  const HttpPart whole{HttpPart::Kind::whole, 0, size, size};
  if (!is_same_name(range.substr(0, kUnit.size()), kUnit)) return whole;
  const std::string_view ends = range.substr(kUnit.size());
  const auto dash = ends.find('-');
  if (dash == std::string_view::npos) return whole;
  const std::string_view first = trimmed(ends.substr(0, dash), " \t");
  const std::string_view last = trimmed(ends.substr(dash + 1), " \t");
  if (first.empty()) return all_digits(last) ? last_bytes(position(last), size) : whole;
  if (!all_digits(first)) return whole;
  if (last.empty()) return range_between(position(first), std::numeric_limits<std::uint64_t>::max(), size);
  if (!all_digits(last) || position(last) < position(first)) return whole;
  return range_between(position(first), position(last), size);
}

std::optional<std::string_view> HttpRequest::field(std::string_view name) const {
  for (const auto& [own, value] : fields)
    if (is_same_name(own, name)) return value;
  return std::nullopt;
}

std::optional<std::string_view> HttpRequest::argument(std::string_view name) const {
  for (const auto& [own, value] : arguments)
    if (own == name) return value;
  return std::nullopt;
}

HttpPart HttpRequest::part_of(std::uint64_t size, std::string_view etag) const {
  const HttpPart whole{HttpPart::Kind::whole, 0, size, size};
  const auto range = field("Range");
  if (method != Method::get || !range) return whole;
  if (const auto condition = field("If-Range"); condition && (etag.empty() || *condition != etag)) return whole;
  return parse_http_range(*range, size);
}

// A weak tag counts as the strong one of the same text (RFC 9110, 13.1.2).
bool HttpRequest::has_content(std::string_view etag) const {
  const auto condition = field("If-None-Match");
  if (!condition || method == Method::post) return false;
  if (trimmed(*condition, " \t") == "*") return true;
  const auto names = [etag](std::string_view text) {
    text = trimmed(text, " \t");
    if (text.starts_with("W/")) text.remove_prefix(2);
    return text == etag;
  };
  return std::ranges::any_of(split(*condition, ','), names);
}

HttpReply http_text(int status, std::string text, std::string type) {
  return {status, {{"Content-Type", std::move(type)}}, std::move(text)};
}

HttpReply http_part_reply(const HttpPart& part) {
  HttpReply reply;
  if (part.kind == HttpPart::Kind::unsatisfiable) {
    reply = http_text(416, fmt::format("there are {} bytes\n", part.size));
    reply.fields.emplace_back("Content-Range", fmt::format("bytes */{}", part.size));
  }
  if (part.kind == HttpPart::Kind::range) {
    reply.status = 206;
    const std::uint64_t last = part.offset + part.length - 1;
    reply.fields.emplace_back("Content-Range", fmt::format("bytes {}-{}/{}", part.offset, last, part.size));
  }
  reply.fields.emplace_back("Accept-Ranges", "bytes");
  return reply;
}

HttpReply http_not_modified(HttpFields fields) {
  return {304, std::move(fields), std::string()};
}

}  // namespace weft
