// Client of an etcd with several endpoints. If an endpoint does not answer, the client uses the next one. It logs in
// again after a login has expired, or after a request with it got no answer. Any thread.
//
// Errors are those of error_of() in etcd_wire.h and of http_client.h. Errc::unreachable: nothing was done.
// Errc::timed_out: a transaction may have been executed, but its answer is unknown for some reason. The client does not
// send it twice: the caller must first read the result.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "http/client/http_client.h"
#include "registry/etcd/etcd_wire.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"

namespace weft::etcd {

// A watch: receives commits from a revision on, as they are made. For one thread, except wake().
class WatchStream {
 public:
  using Clock = HttpStream::Clock;
  WatchStream(std::unique_ptr<HttpStream> lines, std::string where, std::size_t endpoint);
  // Returns nothing if no answer arrives before the deadline or wake(). Errc::unreachable: the stream has ended.
  // Errc::changed: the requested revision is compacted. Fragments of one revision are joined into one answer.
  Result<std::optional<WatchAnswer>> next(Clock::time_point deadline);
  void wake() { lines_->wake(); }
  std::size_t endpoint() const { return endpoint_; }  // index in EtcdOptions::endpoints

 private:
  Result<std::optional<WatchAnswer>> decode(std::string_view line);
  std::unique_ptr<HttpStream> lines_;
  std::string where_;
  const std::size_t endpoint_;
  std::optional<WatchAnswer> part_;  // fragments of an incomplete revision
};

// Of all requests since the start. A watch is one until it is created.
struct RequestTimes {
  std::uint64_t requests = 0, failed = 0, nanoseconds = 0;
};

class Client {
 public:
  using Clock = HttpClient::Clock;
  explicit Client(EtcdOptions options);

  // Errc::invalid for unusable options.
  static Status check(const EtcdOptions& options);

  Result<RangeAnswer> range(const RangeQuery& range);
  Result<TxnAnswer> txn(const Txn& txn);
  Result<LeaseAnswer> grant_lease(std::uint64_t ttl_s);
  Result<LeaseAnswer> keep_alive(std::uint64_t lease);
  Status revoke_lease(std::uint64_t lease);
  // The members of etcd itself. With authentication on, only etcd's user root may ask and change them.
  Result<std::vector<EtcdMember>> members();
  // Adds a member without a vote, which does not count for a quorum. etcd allows one such member at a time. Returns all
  // members.
  Result<std::vector<EtcdMember>> add_learner(const std::string& peer_url);
  Status promote(std::uint64_t member);  // gives the member a vote; fails until its data is complete
  Status remove_member(std::uint64_t member);
  // Watches all changes of `keys` from `revision` on.
  Result<std::unique_ptr<WatchStream>> watch(const Keys& keys, std::uint64_t revision);

  std::string endpoint() const;  // the endpoint that answered last
  RequestTimes times() const { return {requests_, failed_, nanoseconds_}; }
  // True if requests use another endpoint than the watch, because the watch's endpoint did not answer one. A watch that
  // hangs gives no other sign.
  bool has_left(const WatchStream& watch) const { return watch.endpoint() != preferred_; }
  void try_next();  // later requests start with the next endpoint
  void stop(Clock::duration grace) { http_.stop(grace); }
  bool stopped() const { return http_.stopped(); }  // no more requests are sent

 private:
  class Timed;
  enum class Repeat : std::uint8_t { never, safe };  // safe: may be sent again after a missing answer
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
  std::atomic<std::size_t> preferred_{0};  // index in options_.endpoints
  std::atomic<std::uint64_t> requests_{0}, failed_{0}, nanoseconds_{0};
  mutable std::mutex mutex_;
  std::string token_;  // guarded by mutex_
};

// Reads a range in pages of at most `range.limit` keys, of fewer if their values are large, all of one revision.
// Errc::changed: the revision was compacted meanwhile; read again.
Status each_page(Client& client, RangeQuery range, const std::function<void(RangeAnswer&)>& read);

}  // namespace weft::etcd
