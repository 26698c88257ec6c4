// Requests to an etcd of several endpoints: one that does not answer gives way to the next, a login that has expired or
// gets no answer is done again. Any thread.
//
// Errors as etcd_wire.h's error_of() and http.h. Errc::unreachable: nothing was done. Errc::timed_out: a transaction
// may have been done, whatever the reason that its answer is not known; it is not sent twice, as who sent it must look
// first.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "registry/etcd_wire.h"
#include "registry/http.h"
#include "weft/registry.h"
#include "weft/result.h"

namespace weft::etcd {

// What is committed from a revision on, as it is committed. For one thread, but wake().
class WatchStream {
 public:
  using Clock = HttpStream::Clock;
  WatchStream(std::unique_ptr<HttpStream> lines, std::string where, std::size_t endpoint);
  // Nothing when none came until the deadline or wake(). Errc::unreachable: the stream is over. Errc::changed: the
  // revision asked for is compacted. The parts of one revision come as one answer.
  Result<std::optional<WatchAnswer>> next(Clock::time_point deadline);
  void wake() { lines_->wake(); }
  std::size_t endpoint() const { return endpoint_; }  // that brings it, as Client counts

 private:
  Result<std::optional<WatchAnswer>> decode(std::string_view line);
  std::unique_ptr<HttpStream> lines_;
  std::string where_;
  const std::size_t endpoint_;
  std::optional<WatchAnswer> part_;  // of a revision that is not whole yet
};

class Client {
 public:
  using Clock = HttpClient::Clock;
  explicit Client(EtcdOptions options);

  // Errc::invalid: options that cannot be.
  static Status check(const EtcdOptions& options);

  Result<RangeAnswer> range(const RangeQuery& range);
  Result<TxnAnswer> txn(const Txn& txn);
  Result<LeaseAnswer> grant_lease(std::uint64_t ttl_s);
  Result<LeaseAnswer> keep_alive(std::uint64_t lease);
  Status revoke_lease(std::uint64_t lease);
  // Everything about `keys` from `revision` on.
  Result<std::unique_ptr<WatchStream>> watch(const Keys& keys, std::uint64_t revision);

  std::string endpoint() const;  // the one that answered last
  std::uint64_t requests() const { return requests_; }
  // Requests go elsewhere by now: its endpoint did not answer one. A watch that hangs ends by nothing else.
  bool has_left(const WatchStream& watch) const { return watch.endpoint() != preferred_; }
  void try_next();  // begins with another endpoint: this one answers, and knows nothing new
  void stop(Clock::duration grace) { http_.stop(grace); }
  bool stopped() const { return http_.stopped(); }  // no request goes out any more

 private:
  enum class Repeat : std::uint8_t { never, safe };  // what may have been done may be sent again
  Result<std::string> call(std::string_view path, const std::string& body, Repeat repeat);
  Result<std::string> call_endpoint(std::size_t endpoint, std::string_view path, const std::string& body,
                                    Clock::time_point deadline);
  Result<std::string> post(std::size_t endpoint, std::string_view path, const std::string& body,
                           const std::string& token, Clock::time_point deadline);
  void drop_token(const std::string& token);
  Status log_in(std::size_t endpoint, Clock::time_point deadline);
  std::string url(std::size_t endpoint, std::string_view path) const;
  std::string token() const;
  Result<std::unique_ptr<WatchStream>> watch_at(std::size_t endpoint, const Keys& keys, std::uint64_t revision);

  const EtcdOptions options_;
  HttpClient http_;
  std::atomic<std::size_t> preferred_{0};  // an index into endpoints
  std::atomic<std::uint64_t> requests_{0};
  mutable std::mutex mutex_;
  std::string token_;  // guarded by mutex_
};

}  // namespace weft::etcd
