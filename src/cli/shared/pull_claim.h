// The claim of a pull: of the nodes of a cluster, one pulls a source at a time. A node that waits in line asks a node
// before it for the bytes that this one has received or copied.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/shared/context.h"
#include "control/client.h"
#include "daemon_api/control_messages.h"
#include "weft/cluster/pulled.h"
#include "weft/result.h"

namespace weft {

// Held while it lives: by the daemon of this node, as long as the connection of this process lasts.
class PullClaim {
 public:
  using Clock = std::chrono::steady_clock;
  // Called by the waiting thread. `from` asks a node before this node in line. It should return soon after `stopped`
  // returns true, and returns when it may be called again.
  using OnWait = std::function<Clock::time_point(PulledFiles& from, const std::function<bool()>& stopped)>;

  // Waits while another node has the claim of `key`, and says every few seconds which node and since when. When it
  // returns, this node's store shows whatever that node has published. Without a daemon there is nothing to claim.
  // Errc::cancelled: `context` is interrupted. Errc::timed_out: another node still has the claim at `until`.
  static Result<std::unique_ptr<PullClaim>> take(const Context& context, const std::string& key,
                                                 Clock::time_point until, const OnWait& on_wait);
  ~PullClaim();

  // True once the claim is lost, because weftd has ended or does not reach etcd: another node may have it. Any thread.
  bool is_lost();
  // Asks the node that had the claim last; null if that is unknown. It must not outlive this.
  std::unique_ptr<PulledFiles> last_holder();

  PullClaim(const PullClaim&) = delete;
  PullClaim& operator=(const PullClaim&) = delete;

 private:
  PullClaim(const Context& context, std::unique_ptr<control::Client> daemon)
      : context_(context), daemon_(std::move(daemon)) {}
  class Holder;
  void ask(const std::string& key);
  Status wait(Clock::time_point until, const OnWait& on_wait);
  Clock::time_point pass_turn(const ClaimEvent& line, Clock::time_point until, const OnWait& on_wait);

  const Context& context_;
  const std::unique_ptr<control::Client> daemon_;
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  ClaimEvent last_;             // the last report, guarded by mutex_; without a holder until weftd reports one
  std::optional<Error> ended_;  // the same: the request has ended
  std::thread asking_;
};

}  // namespace weft
