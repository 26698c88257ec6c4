// The answer to one POST, as a stream of lines that may never end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

// `environment`: the proxies of the variables http_proxy, https_proxy, all_proxy and no_proxy.
enum class HttpProxies : std::uint8_t { none, environment };

struct HttpOptions {
  // Files for TLS; "" for the system's authorities, and for no certificate of this client.
  std::string ca, cert, key;
  std::chrono::milliseconds connect_max{1'000};
  std::size_t answer_max = 0;  // largest answer to a POST, or line of a stream, in bytes
  std::string ca_directory{};  // hashed certificates of authorities, beside `ca`
  HttpProxies proxies = HttpProxies::none;
  // "sha256//" and the Base64 of the SHA-256 of a public key: the server proves that it has this key, and its
  // certificate is not checked otherwise. "": the certificate is checked.
  std::string pinned_key{};
};

// For one thread, except wake(). HttpClient::stream() makes it.
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

}  // namespace weft
