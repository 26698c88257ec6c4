#include "net/transport/endpoint.h"

#include <fmt/core.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>

#include "base/limits.h"

namespace weft::net {
namespace {

constexpr std::size_t kQueueEntries = 4096;

Result<std::uint64_t> random_key(std::size_t key_bytes) {
  std::uint64_t key = 0;
  if (::getrandom(&key, sizeof key, 0) != static_cast<ssize_t>(sizeof key))
    return Error{Errc::internal, "no random bytes for a window's key"};
  return key_bytes >= sizeof key ? key : key & ((std::uint64_t{1} << (8 * key_bytes)) - 1);
}

// Memory that was asked for and never written to has none. That of windows has been read in (weft/window_memory.h).
void take_pages(std::span<const std::byte> memory) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto* const bytes = const_cast<volatile std::byte*>(memory.data());  // ours to write to: something will land there
  for (std::size_t at = 0; at < memory.size(); at += page) bytes[at] = bytes[at];
  if (!memory.empty()) bytes[memory.size() - 1] = bytes[memory.size() - 1];
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(InfoPtr info) {
  auto made = std::make_unique<Endpoint>();
  made->info = std::move(info);
  const std::string what = fmt::format("provider {}", made->provider());
  if (Status status = made->make(); !status.ok())
    return Error{status.error().code, fmt::format("{}: {}", what, status.error().message)};
  return made;
}

Status Endpoint::make() {
  WEFT_TRY(fabric, make_fid<fid_fabric>("opening the fabric", [this](fid_fabric** out) {
             return fi_fabric(info->fabric_attr, out, nullptr);
           }));
  WEFT_TRY(domain, make_fid<fid_domain>("opening the domain", [this](fid_domain** out) {
             return fi_domain(fabric.get(), info.get(), out, nullptr);
           }));
  fi_cq_attr queue_attr{};
  queue_attr.size = kQueueEntries;
  queue_attr.format = FI_CQ_FORMAT_MSG;
  queue_attr.wait_obj = FI_WAIT_FD;
  WEFT_TRY(queue, make_fid<fid_cq>("a completion queue that can be waited for",
                                   [&](fid_cq** out) { return fi_cq_open(domain.get(), &queue_attr, out, nullptr); }));
  fi_av_attr peers_attr{};
  peers_attr.type = FI_AV_UNSPEC;
  WEFT_TRY(peers, make_fid<fid_av>("an address vector",
                                   [&](fid_av** out) { return fi_av_open(domain.get(), &peers_attr, out, nullptr); }));
  WEFT_TRY(endpoint, make_fid<fid_ep>("an endpoint", [this](fid_ep** out) {
             return fi_endpoint(domain.get(), info.get(), out, nullptr);
           }));
  if (const int failed = fi_ep_bind(endpoint.get(), &queue->fid, FI_TRANSMIT | FI_RECV); failed != 0)
    return fabric_error(failed, "binding the queue");
  if (const int failed = fi_ep_bind(endpoint.get(), &peers->fid, 0); failed != 0)
    return fabric_error(failed, "binding the address vector");
  if (const int failed = fi_enable(endpoint.get()); failed != 0) return fabric_error(failed, "enabling the endpoint");
  return find_address();
}

Status Endpoint::find_address() {
  std::array<std::byte, limits::kEndpointAddressMax> name{};
  std::size_t length = name.size();
  if (const int failed = fi_getname(&endpoint->fid, name.data(), &length); failed != 0)
    return fabric_error(failed, "asking for the own address");
  address.assign(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(length));
  return {};
}

Result<Registration> Registration::make(Endpoint& endpoint, std::span<const std::byte> memory, std::uint64_t access) {
  Registration made;
  const bool remote = access == FI_REMOTE_READ;
  if (!remote && !endpoint.needs(FI_MR_LOCAL)) return made;
  if (!remote && endpoint.needs(FI_MR_ALLOCATED)) take_pages(memory);
  std::uint64_t key = 0;
  if (remote && !endpoint.needs(FI_MR_PROV_KEY)) {
    WEFT_TRY(key, random_key(endpoint.info->domain_attr->mr_key_size));
  }
  WEFT_TRY(made.region_, make_fid<fid_mr>("registering memory", [&](fid_mr** out) {
             return fi_mr_reg(endpoint.domain.get(), memory.data(), memory.size(), access, 0, key, 0, out, nullptr);
           }));
  if (!endpoint.needs(FI_MR_ENDPOINT)) return made;
  if (const int failed = fi_mr_bind(made.region_.get(), &endpoint.endpoint->fid, 0); failed != 0)
    return fabric_error(failed, "binding memory to the endpoint");
  if (const int failed = fi_mr_enable(made.region_.get()); failed != 0) return fabric_error(failed, "enabling memory");
  return made;
}

Result<std::unique_ptr<MessageBuffers>> MessageBuffers::make(Endpoint& endpoint, std::size_t count) {
  auto made = std::make_unique<MessageBuffers>();
  made->memory_.resize(count * kMessageBytesMax);
  for (std::size_t i = count; i-- > 0;) made->free_.push_back(made->memory_.data() + i * kMessageBytesMax);
  WEFT_TRY(made->registration_, Registration::make(endpoint, made->memory_, FI_SEND | FI_RECV));
  return made;
}

std::span<std::byte> MessageBuffers::take() {
  if (free_.empty()) return {};
  std::byte* buffer = free_.back();
  free_.pop_back();
  return {buffer, kMessageBytesMax};
}

}  // namespace weft::net
