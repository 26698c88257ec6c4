// POST requests over HTTP or HTTPS, for etcd's gateway. The only user of libcurl (in the .cc files).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/result.h"

namespace weft {

struct HttpOptions {
  std::string ca, cert, key;  // as in EtcdOptions
  std::chrono::milliseconds connect_max{1'000};
  std::size_t answer_max = 0;  // largest answer, or line of a stream, in bytes
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// The answer to one POST, as a stream of lines that may never end. For one thread, except wake().
class HttpStream {
 public:
  using Clock = std::chrono::steady_clock;
  ~HttpStream();
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  // Returns the next complete line, without its end; nothing if none arrives before the deadline or wake().
  // Errc::unreachable: the stream has ended, or the peer is dead (noticed within some seconds, even if the connection
  // is not closed). Errc::io: a line longer than answer_max.
  Result<std::optional<std::string>> next(Clock::time_point deadline);
  int status() const;  // HTTP status; 0 before the first line
  void wake();         // any thread: makes next() return soon

 private:
  friend class HttpClient;
  struct Curl;
  HttpStream(HttpOptions options, std::string url, std::string_view body);
  Status begin(const std::string& token, const std::string& header);
  static std::size_t receive(char* bytes, std::size_t size, std::size_t count, void* user);
  void take_bytes(std::string_view bytes);
  std::optional<std::string> take_line();
  Status transfer();
  Result<std::optional<std::string>> end();

  const HttpOptions options_;
  const std::string url_;
  const std::string body_;
  const std::unique_ptr<Curl> curl_;
  std::atomic<bool> woken_{false};
  std::string buffer_;
  std::size_t begin_ = 0;                    // start of the first unread line in buffer_
  std::size_t newline_ = std::string::npos;  // end of that line, if it is complete
  std::size_t tail_ = 0;                     // bytes after the last line end
  bool too_long_ = false;
  bool ended_ = false;
};

// Keeps connections open between requests. Any thread. Follows no redirects and uses no proxy.
class HttpClient {
 public:
  using Clock = std::chrono::steady_clock;
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends `token` as the Authorization header, unless it is empty. Errc::unreachable: nothing was sent.
  // Errc::timed_out: the peer may have received it, but sent no complete answer. Errc::io: an answer over answer_max.
  // Errc::permission: certificates. Errc::cancelled: after stop().
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
