#include "registry/http.h"

#include <fmt/core.h>

#include <algorithm>

#include "registry/curl.h"

namespace weft {
namespace {

constexpr std::size_t kIdleMax = 8;  // idle connections to keep

struct Receiver {
  std::string body;
  std::size_t bytes_max;
};

std::size_t receive(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& receiver = *static_cast<Receiver*>(user);
  if (size * count > receiver.bytes_max - receiver.body.size()) return 0;
  receiver.body.append(bytes, size * count);
  return size * count;
}

// Aborts a request after stop(). libcurl calls this at least once a second.
int check_stop(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const HttpClient*>(user)->stopped() ? 1 : 0;
}

long milliseconds_until(HttpClient::Clock::time_point deadline) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - HttpClient::Clock::now()).count();
  return std::max<long>(1, left);
}

}  // namespace

class HttpClient::Handle {
 public:
  explicit Handle(const HttpOptions& options) : curl_(curl_easy_init()) { curl_prepare(curl_.get(), options); }
  CURL* get() const { return curl_.get(); }

 private:
  CurlHandle curl_;
};

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) {
  curl_start();
}
HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Handle> HttpClient::borrow() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Handle>(options_);
  auto handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

void HttpClient::give_back(std::unique_ptr<Handle> handle) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(handle));
}

void HttpClient::stop(Clock::duration grace) {
  stop_at_ = (Clock::now() + grace).time_since_epoch().count();
}

bool HttpClient::stopped() const {
  Clock::rep at = stop_at_;
  return at != 0 && Clock::now().time_since_epoch().count() >= at;
}

Result<HttpAnswer> HttpClient::post(const std::string& url, std::string_view body, const std::string& token,
                                    Clock::time_point deadline) {
  if (stopped()) return Error{Errc::cancelled, fmt::format("{}: stopped", url)};
  std::unique_ptr<Handle> handle = borrow();
  CURL* curl = handle->get();
  Receiver receiver{{}, options_.answer_max};
  CurlHeaders headers = curl_headers(token);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds_until(deadline));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, check_stop);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_WRITE_ERROR)
    return Error{Errc::io,
                 fmt::format("{}: expected an answer of at most {} bytes, got more", url, options_.answer_max)};
  if (code != CURLE_OK) return curl_error(curl, code, url);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, nullptr);
  give_back(std::move(handle));
  return HttpAnswer{static_cast<int>(status), std::move(receiver.body)};
}

}  // namespace weft
