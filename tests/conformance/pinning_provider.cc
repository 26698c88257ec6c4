#include "pinning_provider.h"

#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "fakes/tcp_providers.h"
#include "net/transport/datagrams.h"
#include "net/transport/fabric_transport.h"
#include "net/transport/provider.h"

namespace weft::conformance {
namespace {

constexpr int kEveryBit = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

// A registration by a transport. A window also has a registration of libfabric, `real`, under the same key.
struct Region {
  fid_mr mr{};
  fid_domain* domain = nullptr;
  fid_mr* real = nullptr;
  const std::byte* begin = nullptr;
  std::size_t size = 0;
  std::uint64_t access = 0;
  const fid* endpoint = nullptr;  // endpoint that it is bound to
  bool enabled = false;
};

// The registrations of all endpoints of this process. Any thread.
struct Regions {
  std::mutex mutex;
  std::map<const void*, Region*> by_descriptor;  // guarded by mutex, like all fields below
  std::map<std::uint64_t, std::uint64_t> base_of_key;
  std::mt19937_64 keys{std::random_device{}()};
};
Regions& regions() {
  static Regions all;
  return all;
}

// The operations of net, equal for all of its objects, and ours, which replace them.
struct Operations {
  fi_ops_mr* memory = nullptr;
  fi_ops_msg* messages = nullptr;
  fi_ops_rma* reads = nullptr;
  fi_ops* endpoint = nullptr;
};
Operations net_own;

std::atomic<int> closed_too_early{0};
std::atomic<int> for_reads{0};

// True if the descriptor permits this access to [memory, +length).
bool is_registered(const void* descriptor, const void* memory, std::size_t length, std::uint64_t access) {
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_descriptor.find(descriptor);
  if (found == all.by_descriptor.end()) return false;
  const Region& region = *found->second;
  const auto* const at = static_cast<const std::byte*>(memory);
  const bool inside = at >= region.begin && length <= region.size &&
                      static_cast<std::size_t>(at - region.begin) <= region.size - length;
  return inside && region.enabled && (region.access & access) == access;
}

// True if the address is in a mapping of a file.
bool is_file(const void* memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, mode, offset, device;
    unsigned long inode = 0;
    words >> range >> mode >> offset >> device >> inode;
    const auto dash = range.find('-');
    if (at >= std::stoull(range.substr(0, dash), nullptr, 16) && at < std::stoull(range.substr(dash + 1), nullptr, 16))
      return inode != 0;
  }
  return false;
}

bool has_pages(const void* memory, std::size_t length) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(memory) + length;
  std::vector<unsigned char> there((end - begin + page - 1) / page);
  if (::mincore(reinterpret_cast<void*>(begin), end - begin, there.data()) != 0) return false;
  for (const unsigned char one : there)
    if ((one & 1U) == 0) return false;
  return true;
}

int bind_region(fid* fid, struct fid* to, std::uint64_t /*flags*/) {
  auto* const region = reinterpret_cast<Region*>(fid);
  if (to->fclass != FI_CLASS_EP || region->enabled) return -FI_EINVAL;
  region->endpoint = to;
  return 0;
}

int enable_region(fid* fid, int command, void* /*argument*/) {
  auto* const region = reinterpret_cast<Region*>(fid);
  if (command != FI_ENABLE || region->endpoint == nullptr || region->enabled) return -FI_EINVAL;
  Regions& all = regions();
  std::uint64_t key = 0;
  {
    const std::lock_guard lock(all.mutex);
    key = all.keys();
  }
  if (region->access == FI_REMOTE_READ) {
    const int failed = net_own.memory->reg(&region->domain->fid, region->begin, region->size, region->access, 0, key, 0,
                                           &region->real, nullptr);
    if (failed != 0) return failed;
  }
  const std::lock_guard lock(all.mutex);
  region->enabled = true;
  region->mr.key = key;
  all.base_of_key[key] = reinterpret_cast<std::uintptr_t>(region->begin);
  return 0;
}

int close_region(fid* fid) {
  auto* const region = reinterpret_cast<Region*>(fid);
  if (region->real != nullptr) fi_close(&region->real->fid);
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  all.by_descriptor.erase(region);
  if (region->enabled) all.base_of_key.erase(region->mr.key);
  delete region;
  return 0;
}

fi_ops region_ops{sizeof(fi_ops), close_region, bind_region, enable_region, nullptr, nullptr, nullptr};

int register_region(fid* fid, const void* memory, std::size_t length, std::uint64_t access, std::uint64_t offset,
                    std::uint64_t key, std::uint64_t flags, fid_mr** out, void* /*context*/) {
  if (length == 0 || offset != 0 || key != 0 || flags != 0) return -FI_EINVAL;  // the provider chooses the key
  if (is_file(memory)) return -FI_EFAULT;
  if (!has_pages(memory, length)) return -FI_EINVAL;
  if (access == FI_READ) ++for_reads;
  auto* const region = new Region;
  region->domain = reinterpret_cast<fid_domain*>(fid);
  region->begin = static_cast<const std::byte*>(memory);
  region->size = length;
  region->access = access;
  region->mr.fid.fclass = FI_CLASS_MR;
  region->mr.fid.ops = &region_ops;
  region->mr.mem_desc = region;
  region->mr.key = FI_KEY_NOTAVAIL;
  *out = &region->mr;
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  all.by_descriptor[region] = region;
  return 0;
}

ssize_t send_registered(fid_ep* endpoint, const void* memory, std::size_t length, void* descriptor, fi_addr_t to,
                        void* context) {
  if (!is_registered(descriptor, memory, length, FI_SEND)) return -FI_EINVAL;
  return net_own.messages->send(endpoint, memory, length, nullptr, to, context);
}

ssize_t receive_registered(fid_ep* endpoint, void* memory, std::size_t length, void* descriptor, fi_addr_t from,
                           void* context) {
  if (!is_registered(descriptor, memory, length, FI_RECV)) return -FI_EINVAL;
  return net_own.messages->recv(endpoint, memory, length, nullptr, from, context);
}

// Returns an address as an offset in its window. An unknown key leaves it unchanged, which is in no window.
std::uint64_t offset_of(std::uint64_t address, std::uint64_t key) {
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  const auto base = all.base_of_key.find(key);
  return base == all.base_of_key.end() ? address : address - base->second;
}

ssize_t read_registered(fid_ep* endpoint, void* memory, std::size_t length, void* descriptor, fi_addr_t from,
                        std::uint64_t address, std::uint64_t key, void* context) {
  if (!is_registered(descriptor, memory, length, FI_READ)) return -FI_EINVAL;
  return net_own.reads->read(endpoint, memory, length, nullptr, from, offset_of(address, key), key, context);
}

// Counts endpoints closed with memory bound to them. Hardware refuses such a close.
int close_endpoint(fid* fid) {
  Regions& all = regions();
  {
    const std::lock_guard lock(all.mutex);
    for (const auto& [descriptor, region] : all.by_descriptor)
      if (region->endpoint == fid) ++closed_too_early;
  }
  return net_own.endpoint->close(fid);
}

Operations make_ours() {
  static fi_ops_mr memory = *net_own.memory;
  static fi_ops_msg messages = *net_own.messages;
  static fi_ops_rma reads = *net_own.reads;
  static fi_ops endpoint = *net_own.endpoint;
  memory.reg = register_region;
  messages.send = send_registered;
  messages.recv = receive_registered;
  reads.read = read_registered;
  endpoint.close = close_endpoint;
  return {&memory, &messages, &reads, &endpoint};
}

void take_place_of(net::Datagrams& net) {
  static Operations ours;
  static std::once_flag once;
  fid_domain* const domain = net.domain().domain.get();
  std::call_once(once, [&] {
    net_own = {domain->mr, net.endpoint()->msg, net.endpoint()->rma, net.endpoint()->fid.ops};
    ours = make_ours();
  });
  domain->mr = ours.memory;
  net.endpoint()->msg = ours.messages;
  net.endpoint()->rma = ours.reads;
  net.endpoint()->fid.ops = ours.endpoint;
  net.domain().info->domain_attr->mr_mode = kEveryBit;
  net.domain().bound_to = net.endpoint();
}

}  // namespace

Result<std::unique_ptr<Transport>> open_pinning_transport(Transport::Receiver receiver) {
  WEFT_TRY(net::InfoPtr info,
           net::find_provider(testing::tcp_providers_with_datagrams().front(), FI_EP_RDM, "127.0.0.1", 0));
  WEFT_TRY(auto datagrams, net::Datagrams::open(std::move(info)));
  take_place_of(*datagrams);
  return net::FabricTransport::open(std::move(datagrams), std::move(receiver));
}

int registrations_for_reads() {
  return for_reads;
}

int endpoints_closed_too_early() {
  return closed_too_early;
}

}  // namespace weft::conformance
