// A transport inside one process: the twin of the one over libfabric, for tests that need no network, and whose peers
// can be made to fall silent or die.
#pragma once

#include <memory>

#include "weft/transport.h"

namespace weft::net {

// What twins are connected by. Any thread.
class TwinNetwork {
 public:
  TwinNetwork();
  ~TwinNetwork();
  TwinNetwork(const TwinNetwork&) = delete;
  TwinNetwork& operator=(const TwinNetwork&) = delete;

  // A transport of this network; the network lives on for as long as one of its transports does.
  std::unique_ptr<Transport> open(Transport::Receiver receiver);
  // As a stopped process: what is sent to it, and read from it, stays in flight until it goes on.
  void stop(const EndpointAddress& address);
  void go_on(const EndpointAddress& address);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace weft::net
