#include "net/transport/domain.h"

#include <sys/random.h>
#include <unistd.h>

#include <utility>

#include "base/limits.h"

namespace weft::net {
namespace {

constexpr std::size_t kQueueEntries = 8192;  // rxe, for example, allows at most 32,767
constexpr std::size_t kBlockBuffers = 32;

Result<std::uint64_t> random_key(std::size_t key_bytes) {
  std::uint64_t key = 0;
  if (::getrandom(&key, sizeof key, 0) != static_cast<ssize_t>(sizeof key))
    return Error{Errc::internal, "no random bytes for a window's key"};
  return key_bytes >= sizeof key ? key : key & ((std::uint64_t{1} << (8 * key_bytes)) - 1);
}

// Touches each page: fresh memory has no physical pages to register. Window memory needs no touch, because it has been
// read in (weft/bytes/window_memory.h).
void take_pages(std::span<const std::byte> memory) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto* const bytes = const_cast<volatile std::byte*>(memory.data());  // writable: it is a landing or a message buffer
  for (std::size_t at = 0; at < memory.size(); at += page) bytes[at] = bytes[at];
  if (!memory.empty()) bytes[memory.size() - 1] = bytes[memory.size() - 1];
}

}  // namespace

Result<std::unique_ptr<Domain>> Domain::open(InfoPtr info) {
  auto made = std::make_unique<Domain>();
  made->info = std::move(info);
  WEFT_TRY(made->fabric, make_fid<fid_fabric>("opening the fabric", [&](fid_fabric** out) {
             return fi_fabric(made->info->fabric_attr, out, nullptr);
           }));
  WEFT_TRY(made->domain, make_fid<fid_domain>("opening the domain", [&](fid_domain** out) {
             return fi_domain(made->fabric.get(), made->info.get(), out, nullptr);
           }));
  fi_cq_attr queue{};
  queue.size = kQueueEntries;
  queue.format = FI_CQ_FORMAT_DATA;
  queue.wait_obj = FI_WAIT_FD;
  WEFT_TRY(made->queue, make_fid<fid_cq>("a completion queue that can be waited for", [&](fid_cq** out) {
             return fi_cq_open(made->domain.get(), &queue, out, nullptr);
           }));
  if (const int failed = fi_cq_signal(made->queue.get()); failed != 0)
    return fabric_error(failed, "waking a thread that waits for completions");
  return made;
}

Result<EndpointAddress> address_of(fid& endpoint) {
  EndpointAddress address(limits::kEndpointAddressMax);
  std::size_t length = address.size();
  if (const int failed = fi_getname(&endpoint, address.data(), &length); failed != 0)
    return fabric_error(failed, "asking for the own address");
  address.resize(length);
  return address;
}

Result<Registration> Registration::make(Domain& domain, std::span<const std::byte> memory, std::uint64_t access) {
  Registration made;
  const bool remote = access == FI_REMOTE_READ;
  if (!remote && !domain.needs(FI_MR_LOCAL)) return made;
  if (!remote && domain.needs(FI_MR_ALLOCATED)) take_pages(memory);
  std::uint64_t key = 0;
  if (remote && !domain.needs(FI_MR_PROV_KEY)) {
    WEFT_TRY(key, random_key(domain.info->domain_attr->mr_key_size));
  }
  WEFT_TRY(auto region, make_fid<fid_mr>("registering memory", [&](fid_mr** out) {
             return fi_mr_reg(domain.domain.get(), memory.data(), memory.size(), access, 0, key, 0, out, nullptr);
           }));
  made.region_ = {region.release(), CloseRegion{&domain, memory.size()}};
  domain.registered += memory.size();
  ++domain.registrations;
  if (!domain.needs(FI_MR_ENDPOINT)) return made;
  if (const int failed = fi_mr_bind(made.region_.get(), &domain.bound_to->fid, 0); failed != 0)
    return fabric_error(failed, "binding memory to the endpoint");
  if (const int failed = fi_mr_enable(made.region_.get()); failed != 0) return fabric_error(failed, "enabling memory");
  return made;
}

void CloseRegion::operator()(fid_mr* region) const {
  fi_close(&region->fid);
  domain->registered -= bytes;
}

std::optional<MessageBuffer> MessageBuffers::take() {
  if (free_.empty() && !add_block().ok()) return std::nullopt;
  const MessageBuffer buffer = free_.back();
  free_.pop_back();
  return buffer;
}

Status MessageBuffers::add_block() {
  if ((blocks_.size() + 1) * kBlockBuffers > most_) return Error{Errc::busy, "all message buffers are in use"};
  Block block;
  block.memory.resize(kBlockBuffers * kMessageBytesMax);
  WEFT_TRY(block.registration, Registration::make(domain_, block.memory, FI_SEND | FI_RECV));
  for (std::size_t i = kBlockBuffers; i-- > 0;)
    free_.push_back(
        {std::span(block.memory).subspan(i * kMessageBytesMax, kMessageBytesMax), block.registration.descriptor()});
  blocks_.push_back(std::move(block));
  return {};
}

void MessageBuffers::close_registrations() {
  for (Block& block : blocks_) block.registration.close();
}

}  // namespace weft::net
