// Reads URLs: follows redirects, repeats requests that fail for a while, and resumes ranges. Checks what libcurl does
// not: that a range is the requested one, and that a body is not encoded.
//
// A token is sent to one origin alone: scheme, host and port. After a redirect away from it the token is not sent
// again, also not if a later redirect leads back. A server may repeat the token in its
// answer: heads, texts and messages have "[token]" in its place. Messages have no query of a URL.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time_source.h"
#include "http/client/http_client.h"
#include "http/client/http_url.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

struct HttpReaderOptions {
  HttpOptions http;
  std::string user_agent;
  std::string token;         // of printable characters, sent as "Authorization: Bearer TOKEN"; "": none
  std::string token_origin;  // HttpUrl::origin of the one server that may see the token
  // A request is repeated after a status of 408, 429 or 5xx, and after an error of a connection. The pauses double,
  // unless the server asks for a pause of its own.
  unsigned tries_max = 6;
  std::chrono::milliseconds pause_first{1'000};
  std::chrono::milliseconds pause_max{30'000};
  std::chrono::seconds asked_pause_max{300};  // the longest pause that a server can ask for
  // A connection that transfers fewer bytes a second for this time has stalled.
  std::uint64_t speed_min = 1'024;
  std::chrono::seconds stall_max{30};
  const TimeSource* time = &steady_time();  // for the pauses; outlives the reader
  std::function<bool()> stopped;            // any thread; must not block; empty: never
};

enum class HttpFollow : std::uint8_t { everywhere, same_origin };

struct HttpRead {
  std::string url;
  std::uint64_t body_max = 0;  // bytes; a longer body is an error
  // Bytes of a file that does not change. The length is at least 1.
  std::optional<Range> range;
  // The size of the whole file, if it is known: a server that knows another one has another file.
  std::optional<std::uint64_t> size;
  HttpFollow follow = HttpFollow::everywhere;
};

// The answer to a read. The caller checks the status, which may be 404 or another error. Only the body of status
// 200, or 206 for a range, goes to the sink.
struct HttpResult {
  AnswerHead first;  // of the URL of the request
  AnswerHead last;   // after all redirects; a redirect if it leads to another origin and follow is same_origin
  HttpUrl url;       // of the last answer
  bool redirected_away = false;  // the last answer is of another origin than the first
};

// Any thread.
class HttpReader {
 public:
  explicit HttpReader(HttpReaderOptions options);

  // GET. Errc::unreachable and Errc::timed_out: after all tries, the text of the last error. Errc::busy: still 429.
  // Errc::changed: the file has another size. Errc::io: an answer that breaks the rules of HTTP or a bound.
  // Errc::cancelled: stopped. Others are errors of the sink and of HttpClient.
  //
  // A range is resumed after the last byte that the sink received. A body without a range cannot be resumed: once the
  // sink has received a byte, the first error is final.
  Result<HttpResult> get(const HttpRead& read, const ByteSink& sink);
  // GET of a whole body into memory. `text` has the body if the status is 200.
  Result<HttpResult> get_text(const HttpRead& read, std::string& text);
  Result<HttpResult> head(const HttpRead& read);

 private:
  struct Body;
  Result<HttpResult> repeat(HttpMethod method, const HttpRead& read, Body& body);
  Result<HttpResult> follow(HttpMethod method, const HttpRead& read, Body& body);
  Result<AnswerHead> ask(HttpMethod method, const HttpUrl& url, bool with_token, const HttpRead& read, Body& body);
  std::string without_token(std::string text) const;
  AnswerHead without_token(AnswerHead head) const;
  Result<HttpUrl> next_url(const HttpUrl& url, const AnswerHead& head) const;
  Status pause(std::chrono::milliseconds time, std::string_view where) const;

  const HttpReaderOptions options_;
  HttpClient client_;
};

}  // namespace weft
