// Chooses the provider of a transport, and reports the providers that it passed over.
#include <fmt/core.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "net/transport/connections.h"
#include "net/transport/datagrams.h"
#include "net/transport/fabric_transport.h"
#include "net/transport/provider.h"

namespace weft {
namespace {

constexpr std::string_view kAuto = "auto", kAutoTcp = "auto-tcp";

// Disables libfabric's registration cache. libfabric reads this setting at the first fi_getinfo. The cache keeps memory
// registered, for any access, after a registration was closed: a peer could write to windows, and read closed ones.
void prepare_libfabric() {
  static std::once_flag once;
  std::call_once(once, [] { ::setenv("FI_MR_CACHE_MONITOR", "disabled", 1); });
}

bool may_lock_any_memory() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  return ::syscall(SYS_capget, &header, sets.data()) == 0 && (sets[0].effective & (1U << CAP_IPC_LOCK)) != 0;
}

// Hardware reads and writes only locked memory. With a low limit the transport would start, but reach no peer.
Status check_locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur >= limits::kLockedMemoryMin || may_lock_any_memory())
    return {};
  return Error{Errc::unsupported, fmt::format("RLIMIT_MEMLOCK is {}: expected at least {} (ulimit -l, or LimitMEMLOCK= "
                                              "in the systemd unit)",
                                              human_bytes(limit.rlim_cur), human_bytes(limits::kLockedMemoryMin))};
}

Result<std::unique_ptr<net::Endpoints>> open_endpoints(fi_ep_type type, net::InfoPtr info) {
  const std::string provider = info->fabric_attr->prov_name;
  const auto named = [&](auto opened) -> Result<std::unique_ptr<net::Endpoints>> {
    if (opened.ok()) return std::unique_ptr<net::Endpoints>(std::move(*opened));
    return Error{opened.error().code, fmt::format("provider {}: {}", provider, opened.error().message)};
  };
  return type == FI_EP_MSG ? named(net::Connections::open(std::move(info)))
                           : named(net::Datagrams::open(std::move(info)));
}

Result<std::unique_ptr<Transport>> open_with(const std::string& provider, const TransportOptions& options,
                                             std::vector<PassedOver> passed_over) {
  const fi_ep_type type = net::endpoint_type(provider);
  WEFT_TRY(net::InfoPtr info, net::find_provider(provider, type, options.host, options.port));
  if ((info->domain_attr->mr_mode & FI_MR_LOCAL) != 0)
    if (Status enough = check_locked_memory_limit(); !enough.ok())
      return Error{enough.error().code, fmt::format("provider {}: {}", provider, enough.error().message)};
  WEFT_TRY(auto endpoints, open_endpoints(type, std::move(info)));
  return net::FabricTransport::open(std::move(endpoints), options.receiver, std::move(passed_over));
}

// Returns the RDMA devices of this host, such as "mlx5_0, mlx5_1".
std::string rdma_devices() {
  std::string names;
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none))
    names += (names.empty() ? "" : ", ") + device.path().filename().string();
  return names;
}

void log_choice(const Transport& transport, std::string_view wanted) {
  log_info("provider {} for traffic between nodes", transport.provider());
  for (const PassedOver& one : transport.passed_over()) log_info("passed over: {}", one.reason);
  const std::string devices = rdma_devices();
  if (wanted == kAuto && !devices.empty() && is_over_tcp(transport.provider()))
    log_warning("this host has RDMA devices ({}), but traffic between nodes uses {}; status says why", devices,
                transport.provider());
}

}  // namespace

bool is_over_tcp(std::string_view provider) {
  return provider == "net" || provider.starts_with("tcp");
}

TransportCounters& TransportCounters::operator+=(const TransportCounters& more) {
  messages_sent += more.messages_sent;
  messages_received += more.messages_received;
  reads_done += more.reads_done;
  registrations += more.registrations;
  half_open += more.half_open;
  return *this;
}

Result<std::unique_ptr<Transport>> open_fabric_transport(const TransportOptions& options) {
  prepare_libfabric();
  if (options.provider != kAuto && options.provider != kAutoTcp) {
    auto opened = open_with(options.provider, options, {});
    if (opened.ok()) log_choice(**opened, options.provider);
    return opened;
  }
  std::vector<PassedOver> passed_over;
  std::string reasons;
  for (const std::string_view name : net::provider_order()) {
    if (options.provider == kAutoTcp && !is_over_tcp(name)) continue;
    const std::string provider(name);
    auto opened = open_with(provider, options, passed_over);
    if (opened.ok()) {
      log_choice(**opened, options.provider);
      return opened;
    }
    passed_over.push_back({provider, opened.error().message});
    reasons += (reasons.empty() ? "" : "; ") + opened.error().message;
  }
  return Error{Errc::unsupported, "no libfabric provider can be used here: " + reasons};
}

}  // namespace weft
