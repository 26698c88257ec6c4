// Gathers the health of this node and of its cluster (daemon_api/health.h): for the request `health`, and for metrics.
// Every five minutes a worker gathers what is cheap: one small call to each member, to etcd and to the origin. Once an
// hour it also asks the members which versions they have (copies.h). Any thread.
#pragma once

#include <functional>
#include <mutex>

#include "base/bounded_calls.h"
#include "base/worker.h"
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
  // As gather(), but without another look at copies, and not again within some seconds.
  ClusterHealth recent();
  // Returns the facts that were gathered last; without a time before the first.
  ClusterHealth last() const;

 private:
  Result<Worker::Pause> round();
  enum class Copies : std::uint8_t { look, keep };  // keep: those that are known
  ClusterHealth gather(Copies copies, const std::function<bool()>& cancelled);
  ServiceFacts gather_origin();
  void look_for_copies(ClusterHealth& health, const std::function<bool()>& cancelled);
  void keep_copies(ClusterHealth& health) const;

  DaemonParts& parts_;
  std::mutex gathering_;  // held while facts are gathered
  // One check at a time: a file system that hangs must not cost a thread every few minutes.
  BoundedCalls origin_calls_{"origin", 1};
  mutable std::mutex mutex_;
  ClusterHealth last_;  // guarded by mutex_
  Worker worker_{"health"};
};

void serve_health(control::Server& server, Health& health);  // health
void add_health_figures(Figures& figures, const Health& health);

}  // namespace weft
