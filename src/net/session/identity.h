// This node's identity in handshakes.
#pragma once

#include <string>

#include "net/session/handshake.h"
#include "net/session/secret.h"
#include "weft/cluster/transport.h"

namespace weft::net {

struct Identity {
  Secret cluster_key;
  std::string node;
  EndpointAddress address;

  Self with_session(std::uint64_t session) const { return {cluster_key, node, address, session}; }
};

}  // namespace weft::net
