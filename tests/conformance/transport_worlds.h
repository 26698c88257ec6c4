// The transports that the conformance suite runs against.
#pragma once

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "weft/transport.h"

namespace weft::conformance {

// Where transports that can reach each other are opened.
class TransportWorld {
 public:
  virtual ~TransportWorld() = default;
  virtual std::string name() const = 0;
  virtual bool makes_keys() const { return true; }  // weft does, and not the hardware
  virtual std::unique_ptr<Transport> open(Transport::Receiver receiver) = 0;
};

// The twin's, one for each of libfabric's providers that works over loopback (net and tcp), and net with what hardware
// demands.
// WEFT_TEST_PROVIDER in the environment: that provider alone, at the address WEFT_TEST_HOST, as on RDMA devices.
std::vector<std::unique_ptr<TransportWorld>> transport_worlds();
// Those of them that are providers with connections; a transport over one, and the address that it is at.
std::vector<const char*> providers_with_connections();
std::unique_ptr<Transport> open_over(const std::string& provider, Transport::Receiver receiver);
std::string test_host();
// That "auto" is to choose.
std::string best_provider();

// What fails tells in which one.
inline void in_every_world(void (*check)(TransportWorld&)) {
  for (const auto& world : transport_worlds()) {
    CAPTURE(world->name());
    check(*world);
  }
}

// The same, for a check that waits for the clock most of the time.
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
