// Streams of lines: libcurl's multi interface, one connection each.
#include <fmt/core.h>

#include <algorithm>

#include "registry/curl.h"
#include "registry/http.h"

namespace weft {
namespace {

constexpr std::size_t kBufferKept = 1U << 20U;  // of one that had to be larger once

class CurlStream final : public HttpStream {
 public:
  CurlStream(HttpOptions options, std::string url, std::string_view body, const std::string& token,
             const std::string& header)
      : options_(std::move(options)), url_(std::move(url)), body_(body), headers_(curl_headers(token, header)) {}
  ~CurlStream() override {
    if (added_) curl_multi_remove_handle(multi_.get(), easy_.get());
  }

  Status begin() {
    CURL* curl = easy_.get();
    if (curl == nullptr || multi_ == nullptr) return Error{Errc::internal, "libcurl gives no handle"};
    curl_prepare(curl, options_);
    curl_easy_setopt(curl, CURLOPT_URL, url_.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body_.data());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    added_ = curl_multi_add_handle(multi_.get(), curl) == CURLM_OK;
    return added_ ? Status{} : Error{Errc::internal, fmt::format("{}: libcurl takes no request", url_)};
  }

  Result<std::optional<std::string>> next(Clock::time_point deadline) override {
    for (;;) {
      if (auto line = take_line()) return line;
      if (too_long_)
        return Error{Errc::io,
                     fmt::format("{}: expected lines of at most {} bytes, got more", url_, options_.answer_max)};
      if (ended_) return end();
      WEFT_CHECK(transfer());
      if (newline_ != std::string::npos || ended_ || too_long_) continue;
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0 || woken_.exchange(false)) return std::optional<std::string>();
      curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(std::min<long>(left, 60'000)), nullptr);
    }
  }

  int status() const override {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

  void wake() override {
    woken_ = true;
    curl_multi_wakeup(multi_.get());
  }

 private:
  static std::size_t receive(char* bytes, std::size_t size, std::size_t count, void* user) {
    auto& self = *static_cast<CurlStream*>(user);
    self.take_bytes({bytes, size * count});
    return self.too_long_ ? 0 : size * count;
  }

  // No line may be longer than answer_max; whole lines that wait are bounded by what one call of libcurl receives.
  void take_bytes(std::string_view bytes) {
    std::size_t old = buffer_.size();
    buffer_ += bytes;
    std::size_t last = bytes.rfind('\n');
    if (newline_ == std::string::npos && last != std::string_view::npos) newline_ = buffer_.find('\n', old);
    tail_ = last == std::string_view::npos ? tail_ + bytes.size() : bytes.size() - last - 1;
    too_long_ = tail_ > options_.answer_max;
  }

  std::optional<std::string> take_line() {
    if (newline_ == std::string::npos) return {};
    std::string line = buffer_.substr(begin_, newline_ - begin_);
    begin_ = newline_ + 1;
    newline_ = buffer_.find('\n', begin_);
    if (newline_ == std::string::npos) {
      buffer_.erase(0, begin_);
      begin_ = 0;
      if (buffer_.capacity() > kBufferKept && buffer_.size() < kBufferKept) buffer_.shrink_to_fit();
    }
    return line;
  }

  Status transfer() {
    int running = 0;
    if (CURLMcode code = curl_multi_perform(multi_.get(), &running); code != CURLM_OK)
      return Error{Errc::internal, fmt::format("{}: {}", url_, curl_multi_strerror(code))};
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left))
      if (message->msg == CURLMSG_DONE) {
        ended_ = true;
        result_ = message->data.result;
      }
    return {};
  }

  // What came after the last line end is a line too: errors come without one.
  Result<std::optional<std::string>> end() {
    if (!buffer_.empty()) return std::optional<std::string>(std::exchange(buffer_, {}));
    if (result_ == CURLE_OK) return Error{Errc::unreachable, fmt::format("{}: the stream has ended", url_)};
    Error error = curl_error(easy_.get(), result_, url_);
    if (error.code == Errc::timed_out) error.code = Errc::unreachable;
    return error;
  }

  const HttpOptions options_;
  const std::string url_;
  const std::string body_;
  const CurlHeaders headers_;
  CurlMulti multi_{curl_multi_init()};
  CurlHandle easy_{curl_easy_init()};
  bool added_ = false;
  std::atomic<bool> woken_{false};
  std::string buffer_;
  std::size_t begin_ = 0;                    // of the first line in buffer_ that is not taken
  std::size_t newline_ = std::string::npos;  // its end, if it is whole
  std::size_t tail_ = 0;                     // bytes after the last line end
  bool too_long_ = false;
  bool ended_ = false;
  CURLcode result_ = CURLE_OK;
};

}  // namespace

Result<std::unique_ptr<HttpStream>> HttpClient::stream(const std::string& url, std::string_view body,
                                                       const std::string& token, const std::string& header) {
  if (stopped()) return Error{Errc::cancelled, fmt::format("{}: stopped", url)};
  auto stream = std::make_unique<CurlStream>(options_, url, body, token, header);
  WEFT_CHECK(stream->begin());
  return std::unique_ptr<HttpStream>(std::move(stream));
}

}  // namespace weft
