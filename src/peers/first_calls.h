// Calls each member of the cluster when it appears. So two nodes with different keys refuse each other without any
// reader: the exchanges of both log it and list the other node (ExchangeFigures::other_key).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/worker.h"
#include "weft/cluster/exchange.h"
#include "weft/cluster/registry.h"

namespace weft {

// Any thread.
class FirstCalls {
 public:
  // Returns the members as this node can reach them (peers/address.h).
  using Members = std::function<std::vector<Member>()>;
  // `exchange`, and all that `members` uses, outlive this. The destructor waits for a call in flight: a second at most.
  FirstCalls(Exchange& exchange, std::string self, Members members);

  void wake() { worker_.wake(); }  // call after a change of members

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kAgainMin{1}, kAgainMax{60};  // pause after a call without an answer
  struct Called {
    Member member;  // a daemon that restarts is another member
    bool over = false;
    Clock::time_point next{};
    RetryPause pause{kAgainMin, kAgainMax};
  };
  Worker::Pause round();
  void call(Called& called);

  Exchange& exchange_;
  const std::string self_;
  const Members members_;
  std::map<std::string, Called> called_;  // members by node; used only by the worker
  Worker worker_{"first calls"};
};

}  // namespace weft
