// POST over HTTP or HTTPS, as etcd's gateway takes it. Only user of libcurl (in the .cc files).
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
  std::string ca, cert, key;  // as EtcdOptions
  std::chrono::milliseconds connect_max{1'000};
  std::size_t answer_max = 0;  // bytes of an answer, or of a line of a stream
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// The answer of one POST that comes in lines for as long as it lasts. For one thread, but wake().
class HttpStream {
 public:
  using Clock = std::chrono::steady_clock;
  ~HttpStream();
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  // The next whole line, without its end; nothing when none came until the deadline or wake(). Errc::unreachable: the
  // stream has ended, or its peer answers no more (noticed within some seconds, also when nobody closes the
  // connection). Errc::io: a line longer than answer_max.
  Result<std::optional<std::string>> next(Clock::time_point deadline);
  int status() const;  // of HTTP; 0 before the first line
  void wake();         // any thread: next() returns soon

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
  std::size_t begin_ = 0;                    // of the first line in buffer_ that is not taken
  std::size_t newline_ = std::string::npos;  // its end, if it is whole
  std::size_t tail_ = 0;                     // bytes after the last line end
  bool too_long_ = false;
  bool ended_ = false;
};

// Keeps connections between requests. Any thread. Follows no redirection and asks no proxy.
class HttpClient {
 public:
  using Clock = std::chrono::steady_clock;
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `token` goes as the Authorization header, unless it is empty. Errc::unreachable: nothing was sent.
  // Errc::timed_out: it may have been received, and no whole answer came. Errc::io: one larger than answer_max.
  // Errc::permission: certificates. Errc::cancelled: after stop().
  Result<HttpAnswer> post(const std::string& url, std::string_view body, const std::string& token,
                          Clock::time_point deadline);
  // `header`, "Name: value", goes too, unless it is empty.
  Result<std::unique_ptr<HttpStream>> stream(const std::string& url, std::string_view body, const std::string& token,
                                             const std::string& header = {});
  // Requests under way and later ones end after `grace`, streams are the caller's.
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
