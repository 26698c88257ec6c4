// A libfabric peer that connects to a transport and writes to its windows, which no transport of ours does.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "net/transport/domain.h"
#include "net/transport/event.h"
#include "weft/cluster/transport.h"

namespace weft::conformance {

// For providers with connections. Not thread-safe.
class RawPeer {
 public:
  // Connects to `victim`; fails the test if it cannot.
  RawPeer(const std::string& provider, const std::string& host, const Transport& victim);
  // Writes these bytes to the start of the window. False if the write was refused.
  bool write(const RemoteWindow& window, std::span<std::byte> bytes);

 private:
  bool completes();
  std::unique_ptr<net::Domain> domain_;
  net::FidPtr<fid_eq> events_;
  net::FidPtr<fid_ep> endpoint_;
};

}  // namespace weft::conformance
