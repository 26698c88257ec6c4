#include "http/client/http_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kStopEvery{200};  // interval at which a pause looks for a stop
constexpr std::uint64_t kProgressMin = 1U << 20U;     // bytes after which the tries are counted from the start
constexpr std::size_t kTokenMin = 8;                  // a shorter token is part of many texts

constexpr int kOk = 200;
constexpr int kPartial = 206;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool passes(int status) {  // a later try may succeed
  return status == 408 || status == 429 || status >= 500;
}

bool passes(const Error& error) {
  return error.code == Errc::unreachable || error.code == Errc::timed_out;
}

// Returns the number behind "t=" in `"api";r=0;t=55`.
std::optional<std::uint64_t> reset_of(std::string_view rate_limit) {
  for (std::string_view part : split(rate_limit, ';')) {
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (part.starts_with("t=")) return parse_u64(part.substr(2));
  }
  return std::nullopt;
}

// Returns the pause that a server asks for. A date instead of a number counts as none.
std::optional<std::chrono::seconds> asked_pause(const AnswerHead& head, std::chrono::seconds max) {
  std::optional<std::uint64_t> seconds;
  if (const std::string* after = head.field("retry-after")) seconds = parse_u64(*after);
  if (const std::string* limit = head.field("ratelimit"); !seconds && limit != nullptr && head.status == 429)
    seconds = reset_of(*limit);
  if (!seconds) return std::nullopt;
  return std::chrono::seconds(std::min<std::uint64_t>(*seconds, static_cast<std::uint64_t>(max.count())));
}

// The tries of one request, and the pauses between them.
class Tries {
 public:
  explicit Tries(const HttpReaderOptions& options) : options_(options) { restart(); }

  // Returns the pause before the next try; nothing if there is none.
  std::optional<std::chrono::milliseconds> next(std::optional<std::chrono::seconds> asked) {
    if (++failed_ >= options_.tries_max) return std::nullopt;
    const std::chrono::milliseconds own = pause_;
    pause_ = std::min(2 * pause_, options_.pause_max);
    return asked ? std::chrono::milliseconds(*asked) : own;
  }
  void restart() {
    failed_ = 0;
    pause_ = options_.pause_first;
  }

 private:
  const HttpReaderOptions& options_;
  unsigned failed_ = 0;
  std::chrono::milliseconds pause_{};
};

struct ContentRange {
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> size;  // of the whole file
};

// Parses "bytes 0-99/1000" and "bytes 0-99/*".
std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const auto dash = text.find('-');
  const auto slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) return std::nullopt;
  const auto first = parse_u64(text.substr(0, dash));
  const auto last = parse_u64(text.substr(dash + 1, slash - dash - 1));
  const auto size = parse_u64(text.substr(slash + 1));
  if (!first || !last || (!size && text.substr(slash + 1) != "*")) return std::nullopt;
  return ContentRange{*first, *last, size};
}

Status check_range(const AnswerHead& head, const Range& range, const HttpRead& read, std::string_view where) {
  const std::string* text = head.field("content-range");
  const auto got = text == nullptr ? std::nullopt : parse_content_range(*text);
  const std::uint64_t last = range.offset + range.length - 1;
  if (!got || got->first != range.offset || got->last != last)
    return Error{Errc::io, fmt::format("{}: expected the bytes {}-{}, got {}", where, range.offset, last,
                                       text == nullptr ? "a part without Content-Range" : printable(*text))};
  if (read.size && got->size && *got->size != *read.size)
    return Error{Errc::changed,
                 fmt::format("{}: expected a file of {} bytes, got one of {}", where, *read.size, *got->size)};
  return {};
}

Status check_encoding(const AnswerHead& head, std::string_view where) {
  const std::string* encoding = head.field("content-encoding");
  if (encoding == nullptr || encoding->empty() || *encoding == "identity") return {};
  return Error{Errc::io,
               fmt::format("{}: expected a body without an encoding, got \"{}\"", where, printable(*encoding))};
}

}  // namespace

struct HttpReader::Body {
  ByteSink sink;
  std::optional<Range> range;  // the remaining bytes
  std::uint64_t received = 0;  // in this try
  std::string* text = nullptr;
  bool refused = false;  // by the sink

  // False if the next try would give the sink bytes a second time.
  bool can_go_on() const { return range || text != nullptr || received == 0; }
  bool is_whole() const { return !range || range->length == 0; }
  void begin() {
    received = 0;
    if (text != nullptr) text->clear();
  }
  Status take(std::span<const std::byte> bytes) {
    if (Status status = sink(bytes); !status.ok()) {
      refused = true;
      return status;
    }
    received += bytes.size();
    if (range) {
      range->offset += bytes.size();
      range->length -= bytes.size();
    }
    return {};
  }
};

HttpReader::HttpReader(HttpReaderOptions options) : options_(std::move(options)), client_(options_.http) {}

Result<HttpResult> HttpReader::get(const HttpRead& read, const ByteSink& sink) {
  Body body{sink, read.range};
  return repeat(HttpMethod::get, read, body);
}

Result<HttpResult> HttpReader::get_text(const HttpRead& read, std::string& text) {
  auto append = [&](std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Status();
  };
  Body body{append, read.range};
  if (!read.range) body.text = &text;
  text.clear();
  auto result = repeat(HttpMethod::get, read, body);
  text = without_token(std::move(text));
  return result;
}

Result<HttpResult> HttpReader::head(const HttpRead& read) {
  Body body;
  return repeat(HttpMethod::head, read, body);
}

std::string HttpReader::without_token(std::string text) const {
  constexpr std::string_view kInstead = "[token]";
  const std::string& token = options_.token;
  if (token.size() < kTokenMin) return text;
  auto at = text.find(token);
  if (at == std::string::npos) return text;
  std::string out;
  std::size_t begin = 0;
  for (; at != std::string::npos; at = text.find(token, begin)) {
    out.append(text, begin, at - begin).append(kInstead);
    begin = at + token.size();
  }
  return out.append(text, begin);
}

AnswerHead HttpReader::without_token(AnswerHead head) const {
  for (auto& [name, value] : head.fields) value = without_token(std::move(value));
  return head;
}

Status HttpReader::pause(std::chrono::milliseconds time, std::string_view where) const {
  std::mutex mutex;
  std::condition_variable nobody_wakes;
  std::unique_lock lock(mutex);
  const Deadline end = options_.time->now() + time;
  for (Deadline now = options_.time->now();; now = options_.time->now()) {
    if (options_.stopped && options_.stopped()) return Error{Errc::cancelled, fmt::format("{}: stopped", where)};
    if (now >= end) return {};
    options_.time->wait(nobody_wakes, lock, std::min<Deadline>(end, now + kStopEvery));
  }
}

Result<HttpResult> HttpReader::repeat(HttpMethod method, const HttpRead& read, Body& body) {
  Tries tries(options_);
  for (std::uint64_t done = 0;;) {
    body.begin();
    Result<HttpResult> result = follow(method, read, body);
    if (body.range) done += body.received;  // a text begins again
    if (done >= kProgressMin) {
      tries.restart();
      done = 0;
    }
    const bool may_pass = result.ok() ? passes(result->last.status) : passes(result.error());
    if (!may_pass || body.refused) return result;
    std::optional<std::chrono::seconds> asked;
    if (result.ok()) asked = asked_pause(result->last, options_.asked_pause_max);
    const auto next = body.can_go_on() ? tries.next(asked) : std::nullopt;
    if (next) {
      WEFT_CHECK(pause(*next, result.ok() ? result->url.shown : result.error().message));
      continue;
    }
    if (!result.ok()) return result;
    return Error{
        result->last.status == 429 ? Errc::busy : Errc::unreachable,
        fmt::format("{}: expected an answer, got status {}{} after {} tries", result->url.shown, result->last.status,
                    result->last.status == 429 ? " (too many requests)" : "", options_.tries_max)};
  }
}

Result<HttpResult> HttpReader::follow(HttpMethod method, const HttpRead& read, Body& body) {
  HttpResult result;
  WEFT_TRY(result.url, parse_http_url(read.url));
  const std::string begun_at = result.url.origin;
  bool with_token = !options_.token.empty() && begun_at == options_.token_origin;
  for (unsigned redirects = 0;; ++redirects) {
    WEFT_TRY(const AnswerHead head, ask(method, result.url, with_token, read, body));
    result.last = without_token(head);
    if (redirects == 0) result.first = result.last;
    result.redirected_away = result.url.origin != begun_at;
    if (!is_redirect(result.last.status)) break;
    if (redirects == limits::kHttpRedirectsMax)
      return Error{Errc::io, fmt::format("{}: expected at most {} redirects, got more", result.url.shown, redirects)};
    WEFT_TRY(HttpUrl next, next_url(result.url, head));
    if (read.follow == HttpFollow::same_origin && next.origin != begun_at) break;
    with_token = with_token && next.origin == begun_at;
    result.url = std::move(next);
  }
  if (method == HttpMethod::get && result.last.status == kPartial && !body.is_whole())
    return Error{Errc::timed_out, fmt::format("{}: expected {} more bytes, got the end of the answer", result.url.shown,
                                              body.range->length)};
  return result;
}

// The error of a redirect does not repeat its URL, which may hold a secret.
Result<HttpUrl> HttpReader::next_url(const HttpUrl& url, const AnswerHead& head) const {
  const std::string* location = head.field("location");
  if (location == nullptr)
    return Error{Errc::io, fmt::format("{}: expected a redirect with a Location, got none", url.shown)};
  auto next = resolve_http_url(url, *location);
  if (!next.ok()) return Error{Errc::io, fmt::format("{}: a redirect: {}", url.shown, next.error().message)};
  if (url.secure && !next->secure)
    return Error{Errc::io, fmt::format("{}: expected a redirect to https, got one to http", url.shown)};
  if (options_.token.size() >= kTokenMin && next->text.find(options_.token) != std::string::npos)
    return Error{Errc::io,
                 fmt::format("{}: expected a redirect without the token, got one that contains it", url.shown)};
  return next;
}

Result<AnswerHead> HttpReader::ask(HttpMethod method, const HttpUrl& url, bool with_token, const HttpRead& read,
                                   Body& body) {
  HttpExchange exchange;
  exchange.method = method;
  exchange.url = url.text;
  exchange.where = url.shown;
  exchange.headers = {"Accept-Encoding: identity"};
  if (!options_.user_agent.empty()) exchange.headers.push_back("User-Agent: " + options_.user_agent);
  if (with_token) exchange.headers.push_back("Authorization: Bearer " + options_.token);
  const std::optional<Range> range = body.range;
  if (range)
    exchange.headers.push_back(fmt::format("Range: bytes={}-{}", range->offset, range->offset + range->length - 1));
  AnswerHead taken;
  exchange.takes_body = [&](const AnswerHead& answered) -> Result<bool> {
    taken = answered;
    const AnswerHead head = without_token(answered);
    if (range && head.status == kOk)
      return Error{Errc::io, fmt::format("{}: expected status 206 for a range, got 200", url.shown)};
    if (head.status != (range ? kPartial : kOk)) return false;
    WEFT_CHECK(check_encoding(head, url.shown));
    if (range) WEFT_CHECK(check_range(head, *range, read, url.shown));
    return true;
  };
  if (method == HttpMethod::get) exchange.sink = [&](std::span<const std::byte> bytes) { return body.take(bytes); };
  exchange.body_max = range ? range->length : read.body_max;
  exchange.speed_min = options_.speed_min;
  exchange.stall_max = options_.stall_max;
  exchange.stopped = options_.stopped;
  Result<AnswerHead> head = client_.exchange(exchange);
  // A connection may end after the last byte of the range, but before the end of the answer.
  const bool all_there = range && body.range->length == 0;
  if (!head.ok() && !(all_there && passes(head.error()))) return head;
  return head.ok() ? *std::move(head) : std::move(taken);
}

}  // namespace weft
