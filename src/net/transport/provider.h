// Finds libfabric providers that can do what weft/cluster/transport.h promises.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft::net {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, FreeInfo>;

// The providers to try, best first. `sockets` and `udp` are never used.
std::span<const std::string_view> provider_order();
// FI_EP_MSG for providers with connections, else FI_EP_RDM.
fi_ep_type endpoint_type(std::string_view provider);

// Returns the first entry of a list that is not of an iWARP device, or null. With iWARP, libfabric opens landings to
// writes from the network.
const fi_info* first_usable(const fi_info* found);

// Returns the first usable entry that libfabric offers for this provider with the capabilities that
// weft/cluster/transport.h needs. Errc::unsupported if there is none.
Result<InfoPtr> find_provider(const std::string& provider, fi_ep_type type, const std::string& host,
                              std::uint16_t port);

}  // namespace weft::net
