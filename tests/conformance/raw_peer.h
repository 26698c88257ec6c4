// Somebody who connects to a transport with libfabric, and does to its windows what no transport of ours does.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "net/transport/domain.h"
#include "net/transport/event.h"
#include "weft/transport.h"

namespace weft::conformance {

// Of a provider that has connections. Not thread-safe.
class RawPeer {
 public:
  // Connects to `victim`; fails the test if that is not possible.
  RawPeer(const std::string& provider, const std::string& host, const Transport& victim);
  // Writes these bytes to the beginning of the window. False: it was refused.
  bool write(const RemoteWindow& window, std::span<std::byte> bytes);

 private:
  bool completes();
  std::unique_ptr<net::Domain> domain_;
  net::FidPtr<fid_eq> events_;
  net::FidPtr<fid_ep> endpoint_;
};

}  // namespace weft::conformance
