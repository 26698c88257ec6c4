#include "registry/etcd/etcd_client.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"

namespace weft::etcd {
namespace {

// With this header, an etcd member that loses its leader ends the watch, which would receive nothing new.
constexpr const char* kNeedsLeader = "Grpc-Metadata-hasleader: true";
constexpr auto kFirstLineMax = std::chrono::seconds(5);  // until the first answer of a watch

HttpOptions http_options(const EtcdOptions& options) {
  return {options.ca, options.cert, options.key, options.connect_max, limits::kEtcdAnswerMax};
}

bool gives_way(Errc code) {  // another endpoint may answer
  return code == Errc::unreachable || code == Errc::timed_out || code == Errc::io;
}

// True for errors after which a change was certainly not made. The exception is Errc::no_space: see error_of().
bool is_refusal(Errc code) {
  return code == Errc::unreachable || code == Errc::invalid || code == Errc::permission || code == Errc::busy ||
         code == Errc::changed || code == Errc::no_space;
}

// Converts an error of the login to one of the request, which was never sent.
Error not_sent(Error error) {
  if (error.code == Errc::timed_out || error.code == Errc::io) error.code = Errc::unreachable;
  return error;
}

Status check_endpoint(std::string_view endpoint) {
  bool http = endpoint.starts_with("http://") && endpoint.size() > 7;
  bool https = endpoint.starts_with("https://") && endpoint.size() > 8;
  auto refused = [](char c) { return c <= ' ' || c == 0x7f; };
  if ((http || https) && endpoint.back() != '/' && std::none_of(endpoint.begin(), endpoint.end(), refused)) return {};
  return Error{Errc::invalid, fmt::format("etcd endpoint: expected http://HOST:PORT or https://HOST:PORT, got \"{}\"",
                                          printable(endpoint))};
}

}  // namespace

WatchStream::WatchStream(std::unique_ptr<HttpStream> lines, std::string where, std::size_t endpoint)
    : lines_(std::move(lines)), where_(std::move(where)), endpoint_(endpoint) {}

Result<std::optional<WatchAnswer>> WatchStream::decode(std::string_view line) {
  if (int status = lines_->status(); status != 200) return error_of(status, line, where_);
  WEFT_TRY(WatchAnswer answer, decode_watch(line, where_));
  if (answer.canceled)
    return Error{answer.compacted != 0 ? Errc::changed : Errc::unreachable,
                 fmt::format("{}: the watch is cancelled: {}", where_,
                             answer.compacted != 0 ? fmt::format("older than revision {}", answer.compacted)
                                                   : printable(answer.reason))};
  return std::optional<WatchAnswer>(std::move(answer));
}

Result<std::optional<WatchAnswer>> WatchStream::next(Clock::time_point deadline) {
  for (;;) {
    WEFT_TRY(std::optional<std::string> line, lines_->next(deadline));
    if (!line) return std::optional<WatchAnswer>();
    WEFT_TRY(std::optional<WatchAnswer> answer, decode(*line));
    if (part_) {
      if (part_->events.size() + answer->events.size() > limits::kEtcdValuesMax)
        return Error{Errc::io, fmt::format("{}: more than {} events at once", where_, limits::kEtcdValuesMax)};
      std::move(answer->events.begin(), answer->events.end(), std::back_inserter(part_->events));
      part_->fragment = answer->fragment;
      answer = std::exchange(part_, std::nullopt);
    }
    if (!answer->fragment) return answer;
    part_ = std::move(answer);
  }
}

Client::Client(EtcdOptions options) : options_(std::move(options)), http_(http_options(options_)) {}

Status Client::check(const EtcdOptions& options) {
  if (options.endpoints.empty() || options.endpoints.size() > limits::kEtcdEndpointsMax)
    return Error{Errc::invalid, fmt::format("etcd endpoints: expected 1 to {}, got {}", limits::kEtcdEndpointsMax,
                                            options.endpoints.size())};
  for (const std::string& endpoint : options.endpoints) WEFT_CHECK(check_endpoint(endpoint));
  if (options.cert.empty() != options.key.empty())
    return Error{Errc::invalid, "etcd: expected a certificate and its key, got one of them"};
  return {};
}

std::string Client::url(std::size_t endpoint, std::string_view path) const {
  return fmt::format("{}{}", options_.endpoints[endpoint], path);
}

std::string Client::token() const {
  std::lock_guard lock(mutex_);
  return token_;
}

// Drops a token, so that the next request logs in again. A token contains an index of etcd's log, and an etcd member
// delays a request until its log has reached the index. An etcd cluster restored from a snapshot starts a new log, so a
// request with an old token gets no answer.
void Client::drop_token(const std::string& token) {
  std::lock_guard lock(mutex_);
  if (token_ == token) token_.clear();  // another thread may have renewed it
}

std::string Client::endpoint() const {
  return options_.endpoints[preferred_];
}

void Client::try_next() {
  preferred_ = (preferred_ + 1) % options_.endpoints.size();
}

// Counts a request and its time. It failed unless succeeded() is called.
class Client::Timed {
 public:
  explicit Timed(Client& client) : client_(client) { ++client_.requests_; }
  ~Timed() {
    const std::chrono::nanoseconds took = Clock::now() - begun_;
    client_.nanoseconds_ += static_cast<std::uint64_t>(took.count());
    client_.failed_ += failed_ ? 1 : 0;
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  void succeeded() { failed_ = false; }

 private:
  Client& client_;
  const Clock::time_point begun_ = Clock::now();
  bool failed_ = true;
};

Result<std::string> Client::post(std::size_t endpoint, std::string_view path, const std::string& body,
                                 const std::string& token, Clock::time_point deadline) {
  Timed timed(*this);
  std::string where = url(endpoint, path);
  auto answer = http_.post(where, body, token, deadline);
  if (!answer.ok() && answer.error().code == Errc::permission &&
      answer.error().message.find("wants one") != std::string::npos)
    return Error{Errc::permission,
                 fmt::format("{}; {}", answer.error().message,
                             options_.cert.empty() ? "etcd.cert and etcd.key name a client certificate for etcd"
                                                   : "the client certificate is " + options_.cert + " (etcd.cert)")};
  if (!answer.ok()) return std::move(answer).error();
  if (answer->status != 200) return error_of(answer->status, answer->body, where);
  timed.succeeded();
  return std::move(answer->body);
}

Status Client::log_in(std::size_t endpoint, Clock::time_point deadline) {
  constexpr std::string_view kPath = "/v3/auth/authenticate";
  // etcd refuses a login request that carries an old token.
  WEFT_TRY(std::string text, post(endpoint, kPath, encode_login(options_.user, options_.password), "", deadline));
  WEFT_TRY(std::string token, decode_login(text, url(endpoint, kPath)));
  std::lock_guard lock(mutex_);
  token_ = std::move(token);
  return {};
}

Result<std::string> Client::call_endpoint(std::size_t endpoint, std::string_view path, const std::string& body,
                                          Clock::time_point deadline) {
  if (!options_.user.empty() && token().empty())
    if (Status status = log_in(endpoint, deadline); !status.ok()) return not_sent(status.error());
  const std::string token = this->token();
  auto answer = post(endpoint, path, body, token, deadline);
  if (answer.ok() || options_.user.empty()) return answer;
  if (answer.error().code == Errc::timed_out) drop_token(token);
  if (!is_stale_login(answer.error())) return answer;
  if (Status status = log_in(endpoint, deadline); !status.ok()) return not_sent(status.error());
  return post(endpoint, path, body, this->token(), deadline);
}

Result<std::string> Client::call(std::string_view path, const std::string& body, Repeat repeat) {
  const std::size_t count = options_.endpoints.size();
  const std::size_t first = preferred_;
  const auto end = Clock::now() + options_.answer_max;
  Error failure{Errc::internal, "no endpoint"};
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t endpoint = (first + i) % count;
    auto left = end - Clock::now();
    if (i > 0 && left <= Clock::duration::zero()) break;
    // If the request may be repeated, an endpoint that hangs uses only its share of the time.
    auto share = repeat == Repeat::safe ? left / static_cast<long>(count - i) : left;
    auto answer = call_endpoint(endpoint, path, body, Clock::now() + share);
    if (answer.ok()) preferred_ = endpoint;
    if (answer.ok() || !gives_way(answer.error().code)) return answer;
    failure = std::move(answer).error();
    if (repeat == Repeat::never && failure.code != Errc::unreachable) return failure;
  }
  try_next();
  return Error{failure.code == Errc::io ? Errc::io : failure.code, fmt::format("etcd: {}", failure.message)};
}

Result<RangeAnswer> Client::range(const RangeQuery& range) {
  WEFT_TRY(std::string text, call("/v3/kv/range", encode(range), Repeat::safe));
  return decode_range(text, url(preferred_, "/v3/kv/range"));
}

Result<TxnAnswer> Client::txn(const Txn& txn) {
  bool reads = std::all_of(txn.then.begin(), txn.then.end(),
                           [](const Op& op) { return std::holds_alternative<RangeQuery>(op); });
  if (txn.compares.size() > limits::kEtcdOpsMax || txn.then.size() > limits::kEtcdOpsMax)
    return Error{Errc::invalid, fmt::format("etcd: a transaction has at most {} parts", limits::kEtcdOpsMax)};
  auto text = call("/v3/kv/txn", encode(txn), reads ? Repeat::safe : Repeat::never);
  if (!text.ok() && (reads || is_refusal(text.error().code))) return std::move(text).error();
  if (!text.ok()) return Error{Errc::timed_out, std::move(text).error().message};
  auto answer = decode_txn(*text, txn.then.size(), url(preferred_, "/v3/kv/txn"));
  if (!answer.ok() && !reads) return Error{Errc::timed_out, std::move(answer).error().message};
  return answer;
}

Result<LeaseAnswer> Client::grant_lease(std::uint64_t ttl_s) {
  WEFT_TRY(std::string text, call("/v3/lease/grant", encode_lease_grant(ttl_s), Repeat::safe));
  return decode_lease_grant(text, url(preferred_, "/v3/lease/grant"));
}

Result<LeaseAnswer> Client::keep_alive(std::uint64_t lease) {
  WEFT_TRY(std::string text, call("/v3/lease/keepalive", encode_lease_id(lease), Repeat::safe));
  std::string_view line = text;
  return decode_keep_alive(line.substr(0, line.find('\n')), url(preferred_, "/v3/lease/keepalive"));
}

Status Client::revoke_lease(std::uint64_t lease) {
  WEFT_CHECK(call("/v3/lease/revoke", encode_lease_id(lease), Repeat::safe));
  return {};
}

Result<std::vector<EtcdMember>> Client::members() {
  constexpr std::string_view kPath = "/v3/cluster/member/list";
  WEFT_TRY(const std::string text, call(kPath, "{}", Repeat::safe));
  return decode_members(text, url(preferred_, kPath));
}

Result<std::vector<EtcdMember>> Client::add_learner(const std::string& peer_url) {
  constexpr std::string_view kPath = "/v3/cluster/member/add";
  WEFT_TRY(const std::string text, call(kPath, encode_add_learner(peer_url), Repeat::never));
  return decode_members(text, url(preferred_, kPath));
}

Status Client::promote(std::uint64_t member) {
  WEFT_CHECK(call("/v3/cluster/member/promote", encode_member_id(member), Repeat::never));
  return {};
}

Status Client::remove_member(std::uint64_t member) {
  WEFT_CHECK(call("/v3/cluster/member/remove", encode_member_id(member), Repeat::never));
  return {};
}

Result<std::unique_ptr<WatchStream>> Client::watch_at(std::size_t endpoint, const Keys& keys, std::uint64_t revision) {
  if (!options_.user.empty()) WEFT_CHECK(log_in(endpoint, Clock::now() + options_.answer_max));
  Timed timed(*this);
  std::string where = url(endpoint, "/v3/watch");
  WEFT_TRY(std::unique_ptr<HttpStream> lines, http_.stream(where, encode_watch(keys, revision), token(), kNeedsLeader));
  auto watch = std::make_unique<WatchStream>(std::move(lines), where, endpoint);
  WEFT_TRY(std::optional<WatchAnswer> created, watch->next(Clock::now() + kFirstLineMax));
  if (!created) return Error{Errc::unreachable, fmt::format("{}: no answer", where)};
  if (!created->created) return Error{Errc::io, fmt::format("{}: expected that the watch is created", where)};
  timed.succeeded();
  return watch;
}

// Tries only the preferred endpoint. Callers make a range request before, which finds an endpoint that answers.
Result<std::unique_ptr<WatchStream>> Client::watch(const Keys& keys, std::uint64_t revision) {
  std::size_t endpoint = preferred_;
  auto watch = watch_at(endpoint, keys, revision);
  if (!watch.ok() && gives_way(watch.error().code)) try_next();
  return watch;
}

Status each_page(Client& client, RangeQuery range, const std::function<void(RangeAnswer&)>& read) {
  for (;;) {
    auto page = client.range(range);
    if (!page.ok() && is_too_large(page.error()) && range.limit > 1) {
      range.limit /= 2;
      continue;
    }
    if (!page.ok()) return std::move(page).error();
    if (range.revision == 0) range.revision = page->header.revision;
    const bool more = page->more && !page->items.empty();
    if (more) range.keys.begin = page->items.back().key + '\0';
    read(*page);
    if (!more) return {};
  }
}

}  // namespace weft::etcd
