#include "fakes/tcp_providers.h"

#include <array>

#include "net/transport/provider.h"

namespace weft::testing {
namespace {

bool works(const std::string& provider, fi_ep_type type) {
  return net::find_provider(provider, type, "127.0.0.1", 0).ok();
}

}  // namespace

std::vector<std::string> tcp_providers_with_connections() {
  std::vector<std::string> found;
  for (const std::string provider : {"net", "tcp"})
    if (works(provider, FI_EP_MSG)) found.push_back(provider);
  return found;
}

std::vector<std::string> tcp_providers_with_datagrams() {
  return {works("net", FI_EP_RDM) ? "net" : "tcp", "tcp;ofi_rxm"};
}

}  // namespace weft::testing
