// How the owners of a swarm call other nodes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "weft/cluster/exchange.h"

namespace weft {

// Any thread.
class SwarmCalls {
 public:
  virtual ~SwarmCalls() = default;
  // As Exchange::begin. `done` may run before this returns.
  virtual void begin(const std::string& node, std::vector<std::byte> request, std::chrono::milliseconds patience,
                     CallDone done) = 0;
};

// Answers a request of this node to itself: calls `serve` with a reply, which `done` receives as an answer. The reply
// has no windows.
void call_here(const std::function<void(PendingReply reply)>& serve, CallDone done);

}  // namespace weft
