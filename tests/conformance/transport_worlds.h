// The transports that the conformance suite runs against.
#pragma once

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "weft/cluster/transport.h"

namespace weft::conformance {

// Opens transports that can reach each other.
class TransportWorld {
 public:
  virtual ~TransportWorld() = default;
  virtual std::string name() const = 0;
  virtual bool makes_keys() const { return true; }  // true if weft chooses the keys, false if the hardware does
  virtual std::unique_ptr<Transport> open(Transport::Receiver receiver) = 0;
};

// Returns the twin's world, one for each libfabric provider that works over loopback (net, tcp), and the best of them
// with the demands of hardware. With WEFT_TEST_PROVIDER in the environment: only that provider, at the address
// WEFT_TEST_HOST, as for RDMA devices.
std::vector<std::unique_ptr<TransportWorld>> transport_worlds();
// The providers of these worlds that use connections. open_over() opens a transport over one, test_host() is its
// address.
std::vector<std::string> providers_with_connections();
std::unique_ptr<Transport> open_over(const std::string& provider, Transport::Receiver receiver);
std::string test_host();
// Returns the provider that "auto" should choose.
std::string best_provider();

// Runs a check in each world. A failure names the world.
inline void in_every_world(void (*check)(TransportWorld&)) {
  for (const auto& world : transport_worlds()) {
    CAPTURE(world->name());
    check(*world);
  }
}

// Runs a check in all worlds concurrently, for checks that mostly wait.
inline void in_every_world_at_once(void (*check)(TransportWorld&)) {
  const auto worlds = transport_worlds();
  std::vector<std::future<void>> checks;
  for (const auto& world : worlds)
    checks.push_back(std::async(std::launch::async, [&world, check] {
      CAPTURE(world->name());
      check(*world);
    }));
  for (auto& one : checks) one.get();
}

}  // namespace weft::conformance
