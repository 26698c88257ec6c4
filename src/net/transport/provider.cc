#include "net/transport/provider.h"

#include <fmt/core.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <array>

#include "net/transport/fabric.h"

namespace weft::net {
namespace {

// Native hardware first; `net` is the tcp provider's successor in libfabric 1.17.
constexpr std::array<std::string_view, 7> kOrder{"verbs", "efa", "cxi", "psm3", "psm2", "net", "tcp"};

InfoPtr wanted(const std::string& provider, fi_ep_type type) {
  InfoPtr hints(fi_allocinfo());
  if (!hints) return hints;
  hints->caps = FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;  // each operation has space for either context
  hints->ep_attr->type = type;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->msg_order = FI_ORDER_SAS;  // messages arrive in the order of sending
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  return hints;
}

}  // namespace

std::span<const std::string_view> provider_order() {
  return kOrder;
}

fi_ep_type endpoint_type(std::string_view provider) {
  return provider == "verbs" || provider == "net" || provider == "tcp" ? FI_EP_MSG : FI_EP_RDM;
}

const fi_info* first_usable(const fi_info* found) {
  while (found != nullptr && found->ep_attr->protocol == FI_PROTO_IWARP) found = found->next;
  return found;
}

Result<InfoPtr> find_provider(const std::string& provider, fi_ep_type type, const std::string& host,
                              std::uint16_t port) {
  if (provider.starts_with("sockets") || provider.starts_with("udp"))
    return Error{Errc::unsupported,
                 fmt::format("provider {}: never used: it is slow and no longer cared for", provider)};
  const InfoPtr hints = wanted(provider, type);
  if (!hints) return Error{Errc::internal, "libfabric: no memory"};
  const std::string service = std::to_string(port);
  const bool by_host = provider != "shm";  // its addresses are names, not hosts
  fi_info* found = nullptr;
  const int failed = fi_getinfo(FI_VERSION(1, 17), by_host ? host.c_str() : nullptr,
                                by_host ? service.c_str() : nullptr, by_host ? FI_SOURCE : 0, hints.get(), &found);
  const std::string what = fmt::format("provider {} at {}:{}", provider, host, port);
  if (failed != 0) return fabric_error(failed, what + ": one-sided reads");
  const InfoPtr all(found);
  const fi_info* const usable = first_usable(all.get());
  if (usable == nullptr)
    return Error{Errc::unsupported, what + ": iWARP is not used: others could write to the memory that reads land in"};
  return InfoPtr(fi_dupinfo(usable));
}

}  // namespace weft::net
