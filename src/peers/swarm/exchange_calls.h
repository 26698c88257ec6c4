// Calls of swarms through an exchange.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peers/swarm/swarm_calls.h"
#include "weft/cluster/exchange.h"

namespace weft {

// Any thread.
class ExchangeCalls final : public SwarmCalls {
 public:
  // Returns the address of a member, or nothing.
  using Address = std::function<std::optional<PeerAddress>(const std::string& node)>;
  ExchangeCalls(Exchange& exchange, Address address) : exchange_(exchange), address_(std::move(address)) {}

  // Errc::unreachable also: the node is no member of the cluster.
  void begin(const std::string& node, std::vector<std::byte> request, std::chrono::milliseconds patience,
             CallDone done) override;

 private:
  Exchange& exchange_;
  const Address address_;
};

}  // namespace weft
