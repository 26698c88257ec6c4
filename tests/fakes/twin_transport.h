// An in-process twin of the libfabric transport, for tests without a network. Its peers can be stopped, or die.
#pragma once

#include <memory>

#include "weft/cluster/transport.h"

namespace weft::net {

// Connects twins. Any thread.
class TwinNetwork {
 public:
  TwinNetwork();
  ~TwinNetwork();
  TwinNetwork(const TwinNetwork&) = delete;
  TwinNetwork& operator=(const TwinNetwork&) = delete;

  // Opens a transport on this network. The network lives as long as any of its transports.
  std::unique_ptr<Transport> open(Transport::Receiver receiver);
  // Stops a node like a process: messages to it and reads from it stay in flight until go_on().
  void stop(const EndpointAddress& address);
  void go_on(const EndpointAddress& address);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace weft::net
