#include "http/client/http_client.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "http/client/curl.h"

namespace weft {
namespace {

constexpr std::size_t kIdleMax = 16;  // idle connections to keep
constexpr int kOtherProtocol = 101;
constexpr std::size_t kDroppedMax = 65'536U;  // bytes of an unwanted body to read before the connection is closed

std::string_view trimmed(std::string_view text) {
  return weft::trimmed(text, " \t\r\n");
}

// Returns the status of "HTTP/1.1 200 OK"; 0 if there is none.
int status_of(std::string_view line) {
  const auto space = line.find(' ');
  if (space == std::string_view::npos) return 0;
  const auto status = parse_u64(trimmed(line.substr(space)).substr(0, 3));
  return status && *status >= 100 && *status < 600 ? static_cast<int>(*status) : 0;
}

// Receives one answer.
class Receiver {
 public:
  Receiver(const HttpClient& client, const HttpExchange& exchange) : client_(client), exchange_(exchange) {}

  // False if the exchange ends here.
  bool take_line(std::string_view line) {
    bytes_ += line.size();
    if (complete_ && bytes_ <= limits::kHttpHeadMax) return true;  // a trailer
    if (bytes_ > limits::kHttpHeadMax || head_.fields.size() > limits::kHttpFieldsMax)
      return fail(Error{Errc::io, fmt::format("{}: expected a head of at most {} bytes and {} fields, got more",
                                              exchange_.where, limits::kHttpHeadMax, limits::kHttpFieldsMax)});
    if (trimmed(line).empty()) return complete();
    if (line.starts_with("HTTP/")) {
      head_ = AnswerHead{status_of(line), {}};
      return true;
    }
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || line[0] == ' ' || line[0] == '\t') return true;
    std::string name(trimmed(line.substr(0, colon)));
    std::ranges::transform(name, name.begin(), lower_ascii);
    head_.fields.emplace_back(std::move(name), trimmed(line.substr(colon + 1)));
    return true;
  }

  bool take_bytes(std::span<const std::byte> bytes) {
    if (!takes_) {
      dropped_ += bytes.size();
      cut_ = dropped_ > kDroppedMax;
      return !cut_;
    }
    if (bytes.size() > exchange_.body_max - received_)
      return fail(Error{Errc::io, fmt::format("{}: expected an answer of at most {} bytes, got more", exchange_.where,
                                              exchange_.body_max)});
    received_ += bytes.size();
    if (!exchange_.sink) return true;
    Status status = exchange_.sink(bytes);
    return status.ok() || fail(std::move(status).error());
  }

  bool stopped() const { return client_.stopped() || (exchange_.stopped && exchange_.stopped()); }
  bool cut() const { return cut_; }  // an unwanted body was too long to read to its end
  std::optional<Error>& error() { return error_; }
  AnswerHead& head() { return head_; }

 private:
  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool complete() {
    // libcurl takes what follows 101 for a body.
    if (head_.status == kOtherProtocol)
      return fail(Error{Errc::io, fmt::format("{}: expected an answer of HTTP, got status 101", exchange_.where)});
    if (head_.status / 100 == 1) return true;  // another head follows
    complete_ = true;
    if (!exchange_.takes_body) return true;
    auto takes = exchange_.takes_body(head_);
    if (!takes.ok()) return fail(std::move(takes).error());
    takes_ = *takes;
    return true;
  }

  const HttpClient& client_;
  const HttpExchange& exchange_;
  AnswerHead head_;
  std::optional<Error> error_;
  std::uint64_t bytes_ = 0;  // of all heads and trailers
  std::uint64_t received_ = 0;
  std::uint64_t dropped_ = 0;
  bool complete_ = false;
  bool takes_ = true;
  bool cut_ = false;
};

std::size_t receive_line(char* bytes, std::size_t size, std::size_t count, void* user) {
  return static_cast<Receiver*>(user)->take_line({bytes, size * count}) ? size * count : 0;
}

std::size_t receive_bytes(char* bytes, std::size_t size, std::size_t count, void* user) {
  const std::span<const char> received(bytes, size * count);
  return static_cast<Receiver*>(user)->take_bytes(std::as_bytes(received)) ? size * count : 0;
}

// Aborts a request that is to stop. libcurl calls this at least once a second.
int check_stop(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const Receiver*>(user)->stopped() ? 1 : 0;
}

void set_method(CURL* curl, const HttpExchange& exchange) {
  if (exchange.method == HttpMethod::head) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (exchange.method != HttpMethod::post) return;
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(exchange.body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, exchange.body.empty() ? "" : exchange.body.data());
}

void set_limits(CURL* curl, const HttpExchange& exchange) {
  if (exchange.time_max.count() > 0)
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(exchange.time_max.count()));
  if (exchange.speed_min == 0 || exchange.stall_max.count() == 0) return;
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(exchange.speed_min));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(exchange.stall_max.count()));
}

void set_receiver(CURL* curl, Receiver& receiver) {
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // those of a proxy
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, receive_line);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, check_stop);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &receiver);
}

Error failure_of(CURL* curl, CURLcode code, const HttpExchange& exchange, const CurlErrorText& why) {
  Error error = curl_error(curl, code, exchange.where, why);
  if (code == CURLE_OPERATION_TIMEDOUT && error.code == Errc::timed_out && exchange.time_max.count() == 0)
    error.message = fmt::format("{}: expected at least {} bytes a second, got fewer for {} s", exchange.where,
                                exchange.speed_min, exchange.stall_max.count());
  return error;
}

std::chrono::milliseconds time_until(HttpClient::Clock::time_point deadline) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - HttpClient::Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

}  // namespace

const std::string* AnswerHead::field(std::string_view name) const {
  const auto at = std::ranges::find(fields, name, &std::pair<std::string, std::string>::first);
  return at == fields.end() ? nullptr : &at->second;
}

class HttpClient::Handle {
 public:
  Handle() : curl_(curl_easy_init()) {}
  CURL* get() const { return curl_.get(); }
  CurlErrorText& why() { return why_; }

 private:
  CurlErrorText why_{};
  CurlHandle curl_;
};

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) {
  curl_start();
}
HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Handle> HttpClient::borrow() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Handle>();
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

Result<AnswerHead> HttpClient::exchange(const HttpExchange& exchange) {
  Receiver receiver(*this, exchange);
  const auto is_stopped = [&] { return Error{Errc::cancelled, fmt::format("{}: stopped", exchange.where)}; };
  if (receiver.stopped()) return is_stopped();
  std::unique_ptr<Handle> handle = borrow();
  CURL* curl = handle->get();
  if (curl == nullptr) return Error{Errc::internal, fmt::format("{}: libcurl gives no handle", exchange.where)};
  const CurlHeaders headers = curl_headers(exchange.headers);
  curl_prepare(curl, options_, handle->why());
  curl_easy_setopt(curl, CURLOPT_URL, exchange.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  set_method(curl, exchange);
  set_limits(curl, exchange);
  set_receiver(curl, receiver);
  const CURLcode code = curl_easy_perform(curl);
  if (receiver.error()) return *std::move(receiver.error());
  if (code == CURLE_ABORTED_BY_CALLBACK) return is_stopped();
  if (code != CURLE_OK && !receiver.cut()) return failure_of(curl, code, exchange, handle->why());
  if (receiver.head().status == 0)
    return Error{Errc::io, fmt::format("{}: expected an answer of HTTP, got other bytes", exchange.where)};
  if (receiver.cut()) return std::move(receiver.head());
  curl_easy_reset(curl);  // keeps its connection
  give_back(std::move(handle));
  return std::move(receiver.head());
}

Result<HttpAnswer> HttpClient::post(const std::string& url, std::string_view body, const std::string& token,
                                    Clock::time_point deadline) {
  HttpAnswer answer;
  HttpExchange wanted;
  wanted.method = HttpMethod::post;
  wanted.url = wanted.where = url;
  wanted.headers = json_headers(token);
  wanted.body = body;
  wanted.sink = [&](std::span<const std::byte> bytes) {
    answer.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Status();
  };
  wanted.body_max = options_.answer_max;
  wanted.time_max = time_until(deadline);
  WEFT_TRY(const AnswerHead head, exchange(wanted));
  answer.status = head.status;
  return answer;
}

}  // namespace weft
