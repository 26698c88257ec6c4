// Gathers the health of this node and of its cluster (daemon_api/health.h): for the request `health`, and for metrics.
// A worker asks etcd and the origin every five minutes. On one node, the member with the smallest id, it also asks the
// other members: sessions between all nodes would cost memory. Copies of versions (copies.h) are looked for by a fresh
// request, and after the first one also every hour. Any thread.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/bounded_calls.h"
#include "base/worker.h"
#include "daemon/copies.h"
#include "daemon/figures.h"
#include "daemon/parts.h"
#include "daemon_api/health.h"

namespace weft {

class Health {
 public:
  explicit Health(DaemonParts& parts) : parts_(parts) {}  // outlives this
  void start();
  void stop() { worker_.end(); }

  // Gathers everything now. Takes seconds if a member or a service does not answer.
  ClusterHealth gather(const std::function<bool()>& cancelled);
  // Returns what this node knows without a message: its own facts are new, all others are those of the last message.
  ClusterHealth known();
  // Returns the facts that were gathered last; without a time before the first.
  ClusterHealth last() const;

 private:
  Result<Worker::Pause> round();
  enum class Look : std::uint8_t { here, services, members, copies };  // each includes the ones before it
  ClusterHealth gather(Look look, const std::function<bool()>& cancelled);
  ServiceFacts gather_origin();
  void look_for_copies(ClusterHealth& health, const std::function<bool()>& cancelled);
  bool is_reporter() const;
  bool begun_ = false;  // used by the worker alone

  DaemonParts& parts_;
  std::mutex gathering_;  // held while facts are gathered
  // One check at a time: a file system that hangs must not cost a thread every few minutes.
  BoundedCalls origin_calls_{"origin", 1};
  mutable std::mutex mutex_;
  ClusterHealth last_;  // guarded by mutex_
  Worker worker_{"health"};
};

// Puts the result of a look for copies, at `looked_ns`, into the facts. A cancelled look changes nothing; after another
// error, the versions of the look before stay beside the problem. Pure.
void renew_copies(ClusterHealth& health, const Result<std::vector<SoleVersion>>& sole,
                  const std::function<std::string(const std::string& node)>& name_of, std::uint64_t looked_ns);

void serve_health(control::Server& server, Health& health);  // health
void add_health_figures(Figures& figures, const Health& health);

}  // namespace weft
