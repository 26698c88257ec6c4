// Which libfabric provider a transport uses, and whether it can do what transport.h promises.
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

// Best first. `sockets` and `udp` are never taken.
std::span<const std::string_view> provider_order();
// FI_EP_MSG of those that have connections, else FI_EP_RDM.
fi_ep_type endpoint_type(std::string_view provider);

// The first of a list that is of no iWARP device, or null. With iWARP libfabric opens the memory that reads land in to
// writes from the network.
const fi_info* first_usable(const fi_info* found);

// The first usable of what libfabric offers under this provider's name, as transport.h needs it. Errc::unsupported.
Result<InfoPtr> find_provider(const std::string& provider, fi_ep_type type, const std::string& host,
                              std::uint16_t port);

}  // namespace weft::net
