// Single requests over HTTP or HTTPS, over connections that stay open between requests. Follows no redirects and
// repeats nothing: http_reader.h does. The only user of libcurl (in the .cc files of this folder).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/client/http_stream.h"
#include "weft/result.h"

namespace weft {

// The status line and the fields of an answer.
struct AnswerHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> fields;  // in order; names in lower case

  const std::string* field(std::string_view name) const;  // the first field of this name; null: none
};

// Receives the bytes of a body in order, on the thread of the request. An error ends the request, which returns it.
using ByteSink = std::function<Status(std::span<const std::byte>)>;

enum class HttpMethod : std::uint8_t { get, head, post };

struct HttpExchange {
  HttpMethod method = HttpMethod::get;
  std::string url;
  std::string where;                 // begins messages; may be shorter than the URL
  std::vector<std::string> headers;  // "Name: value"
  std::string_view body;             // of a POST
  // Called once, with the head of the answer. True: its body goes to the sink. False: the body is dropped. An error
  // ends the request, which returns it. Empty: as if it returned true.
  std::function<Result<bool>(const AnswerHead&)> takes_body;
  ByteSink sink;
  std::uint64_t body_max = 0;             // bytes; a longer body is an error
  std::chrono::milliseconds time_max{0};  // for the whole exchange; 0: no limit
  // Ends an exchange that transfers fewer than `speed_min` bytes a second for `stall_max`. 0: never.
  std::uint64_t speed_min = 0;
  std::chrono::seconds stall_max{0};
  std::function<bool()> stopped;  // polled at least once a second, on the thread of the request; empty: never
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// Any thread.
class HttpClient {
 public:
  using Clock = std::chrono::steady_clock;
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Returns the head of the answer after its body has gone to the sink. Errc::unreachable: nothing was sent.
  // Errc::timed_out: the peer may have received the request, but sent no complete answer. Errc::io: an answer beyond
  // the bounds, or none of HTTP. Errc::permission: certificates. Errc::cancelled: after stop(), or stopped by the
  // exchange.
  Result<AnswerHead> exchange(const HttpExchange& exchange);
  // Sends JSON. Sends `token` as the Authorization header, unless it is empty. Errors as above; the answer is bounded
  // by answer_max.
  Result<HttpAnswer> post(const std::string& url, std::string_view body, const std::string& token,
                          Clock::time_point deadline);
  // Sends `header`, "Name: value", too, unless it is empty.
  Result<std::unique_ptr<HttpStream>> stream(const std::string& url, std::string_view body, const std::string& token,
                                             const std::string& header = {});
  // Ends all requests, also later ones, once `grace` has passed. Streams are not affected: the caller ends them.
  void stop(Clock::duration grace);
  bool stopped() const;

 private:
  class Handle;
  std::unique_ptr<Handle> borrow();
  void give_back(std::unique_ptr<Handle> handle);

  const HttpOptions options_;
  std::atomic<Clock::rep> stop_at_{0};  // since the clock's epoch; 0: never
  std::mutex mutex_;
  std::vector<std::unique_ptr<Handle>> idle_;  // guarded by mutex_
};

}  // namespace weft
