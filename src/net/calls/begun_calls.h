// Calls of this node that no thread waits for. One thread sends their requests and questions and keeps their deadlines.
// A few threads make connections for them, and a few open answers and report them.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "base/worker.h"
#include "net/calls/call_link.h"
#include "net/calls/outgoing.h"
#include "weft/cluster/exchange.h"

namespace weft::net {

// Any thread.
class BegunCalls {
 public:
  // Threads that connect. While all of them wait for peers that do not answer, further peers wait for their turn.
  static constexpr unsigned kConnectingThreads = 8;
  // Threads that open answers and call CallDone.
  static constexpr unsigned kReportingThreads = 4;

  explicit BegunCalls(Outgoing& outgoing);  // which outlives this
  ~BegunCalls() { close(); }
  BegunCalls(const BegunCalls&) = delete;
  BegunCalls& operator=(const BegunCalls&) = delete;

  // As Exchange::begin.
  void begin(const PeerAddress& peer, std::span<const std::byte> request, std::chrono::milliseconds patience,
             CallDone done);
  // Reports this error, as for a begun call.
  void refuse(Error error, CallDone done);

  void cancel();  // ends all calls with Errc::cancelled, and later ones at once
  // Calls cancel(), and waits for all reports. They end soon once Outgoing::close() was called.
  void close();
  void add_to(ExchangeFigures& figures) const;

 private:
  struct Call;
  using CallPtr = std::shared_ptr<Call>;
  using Place = std::pair<std::string, EndpointAddress>;  // a node, and its address

  void add(const CallPtr& call);
  void wake(CallPtr call);
  bool reserve(const std::string& node) WEFT_REQUIRES(mutex_);
  void unreserve(const std::string& node);

  // On the worker's thread, or once the worker has ended. Only this thread changes calls that are not over:
  Worker::Pause round();
  void step(const CallPtr& call);
  static bool has_gone(Call& call);
  bool find_link(const CallPtr& call);
  Result<std::shared_ptr<CallLink>> connection_of(const CallPtr& call);
  void wait_for_connection(const CallPtr& call);
  void leave_connection(const CallPtr& call);
  bool send(const CallPtr& call);
  void take(const CallPtr& call, CallLink::Outcome outcome);
  void schedule(const CallPtr& call, Deadline time);
  void fail(const CallPtr& call, Error error);
  void end(const CallPtr& call);

  // On the other threads:
  void connect(const PeerAddress& peer);
  void report(const CallPtr& call);

  Outgoing& outgoing_;
  std::set<std::pair<Deadline, CallPtr>> due_;  // calls in progress, by the time of the next step
  mutable Mutex mutex_;
  std::deque<CallPtr> woken_ WEFT_GUARDED_BY(mutex_);
  std::map<Place, std::vector<CallPtr>> connecting_ WEFT_GUARDED_BY(mutex_);  // calls that wait for a session
  std::map<std::string, std::size_t> begun_each_ WEFT_GUARDED_BY(mutex_);     // calls by node
  std::size_t begun_ WEFT_GUARDED_BY(mutex_) = 0;
  bool started_ WEFT_GUARDED_BY(mutex_) = false;
  bool ending_ WEFT_GUARDED_BY(mutex_) = false;
  std::optional<ThreadPool> connectors_, reporters_;
  Worker worker_{"begun calls"};
};

}  // namespace weft::net
