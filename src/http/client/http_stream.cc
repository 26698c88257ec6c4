// Streams of lines: libcurl's multi interface, one connection each.
#include "http/client/http_stream.h"

#include <fmt/core.h>

#include <algorithm>

#include "http/client/curl.h"
#include "http/client/http_client.h"

namespace weft {
namespace {

constexpr std::size_t kBufferKept = 1U << 20U;  // a larger buffer is shrunk once its content fits

}  // namespace

struct HttpStream::Curl {
  CurlHeaders headers;
  CurlErrorText why{};
  CurlMulti multi{curl_multi_init()};
  CurlHandle easy{curl_easy_init()};
  bool added = false;
  CURLcode result = CURLE_OK;
};

HttpStream::HttpStream(HttpOptions options, std::string url, std::string_view body)
    : options_(std::move(options)), url_(std::move(url)), body_(body), curl_(std::make_unique<Curl>()) {}

HttpStream::~HttpStream() {
  if (curl_->added) curl_multi_remove_handle(curl_->multi.get(), curl_->easy.get());
}

Status HttpStream::begin(const std::string& token, const std::string& header) {
  CURL* easy = curl_->easy.get();
  if (easy == nullptr || curl_->multi == nullptr) return Error{Errc::internal, "libcurl gives no handle"};
  curl_->headers = curl_headers(json_headers(token, header));
  curl_prepare(easy, options_, curl_->why);
  curl_easy_setopt(easy, CURLOPT_URL, url_.c_str());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body_.data());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, curl_->headers.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_->added = curl_multi_add_handle(curl_->multi.get(), easy) == CURLM_OK;
  return curl_->added ? Status{} : Error{Errc::internal, fmt::format("{}: libcurl takes no request", url_)};
}

Result<std::optional<std::string>> HttpStream::next(Clock::time_point deadline) {
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
    curl_multi_poll(curl_->multi.get(), nullptr, 0, static_cast<int>(std::min<long>(left, 60'000)), nullptr);
  }
}

int HttpStream::status() const {
  long status = 0;
  curl_easy_getinfo(curl_->easy.get(), CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

void HttpStream::wake() {
  woken_ = true;
  curl_multi_wakeup(curl_->multi.get());
}

std::size_t HttpStream::receive(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& self = *static_cast<HttpStream*>(user);
  self.take_bytes({bytes, size * count});
  return self.too_long_ ? 0 : size * count;
}

// Bounds an incomplete line by answer_max. Unread complete lines are bounded by the bytes that one libcurl call
// receives.
void HttpStream::take_bytes(std::string_view bytes) {
  std::size_t old = buffer_.size();
  buffer_ += bytes;
  std::size_t last = bytes.rfind('\n');
  if (newline_ == std::string::npos && last != std::string_view::npos) newline_ = buffer_.find('\n', old);
  tail_ = last == std::string_view::npos ? tail_ + bytes.size() : bytes.size() - last - 1;
  too_long_ = tail_ > options_.answer_max;
}

std::optional<std::string> HttpStream::take_line() {
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

Status HttpStream::transfer() {
  CURLM* multi = curl_->multi.get();
  int running = 0;
  if (CURLMcode code = curl_multi_perform(multi, &running); code != CURLM_OK)
    return Error{Errc::internal, fmt::format("{}: {}", url_, curl_multi_strerror(code))};
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi, &left))
    if (message->msg == CURLMSG_DONE) {
      ended_ = true;
      curl_->result = message->data.result;
    }
  return {};
}

// Returns the bytes after the last line end as a line: etcd sends errors without a line end.
Result<std::optional<std::string>> HttpStream::end() {
  if (!buffer_.empty()) return std::optional<std::string>(std::exchange(buffer_, {}));
  if (curl_->result == CURLE_OK) return Error{Errc::unreachable, fmt::format("{}: the stream has ended", url_)};
  Error error = curl_error(curl_->easy.get(), curl_->result, url_, curl_->why);
  if (error.code == Errc::timed_out) error.code = Errc::unreachable;
  return error;
}

Result<std::unique_ptr<HttpStream>> HttpClient::stream(const std::string& url, std::string_view body,
                                                       const std::string& token, const std::string& header) {
  if (stopped()) return Error{Errc::cancelled, fmt::format("{}: stopped", url)};
  std::unique_ptr<HttpStream> stream(new HttpStream(options_, url, body));
  WEFT_CHECK(stream->begin(token, header));
  return stream;
}

}  // namespace weft
