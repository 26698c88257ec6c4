// Which of libfabric's providers run over TCP on this machine (tests/fakes/tcp_providers.cc).
#pragma once

#include <string>
#include <vector>

namespace weft::testing {

// Returns those that use connections, the best first: net and tcp, or tcp alone. Later versions of libfabric than 1.17
// have the code of net in tcp.
std::vector<std::string> tcp_providers_with_connections();
// Returns those with reliable datagrams: net, or tcp, and tcp;ofi_rxm.
std::vector<std::string> tcp_providers_with_datagrams();

}  // namespace weft::testing
