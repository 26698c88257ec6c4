// The libfabric objects that all endpoints of a transport share, memory registration, and message buffers.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "net/transport/fabric.h"
#include "net/transport/provider.h"
#include "weft/cluster/transport.h"

namespace weft::net {

// One domain serves all peers, so a peer that knows the key of a window can read it over any connection. libfabric's
// verbs provider has nothing narrower (1.17, and its main branch of August 2026): it makes no memory windows
// (ibv_alloc_mw), and a protection domain (ibv_alloc_pd) only with a fid_domain, which has completion queues of its
// own. A domain for each peer would mean a queue, message buffers and a registration of each window for each peer.
// Members are closed from the last to the first.
struct Domain {
  // Errc::unsupported if its completion queue has no descriptor to wait on.
  static Result<std::unique_ptr<Domain>> open(InfoPtr info);

  bool needs(std::uint64_t mr_mode) const { return (info->domain_attr->mr_mode & static_cast<int>(mr_mode)) != 0; }
  const char* provider() const { return info->fabric_attr->prov_name; }

  InfoPtr info;
  FidPtr<fid_fabric> fabric;
  FidPtr<fid_domain> domain;
  FidPtr<fid_cq> queue;
  std::atomic<std::uint64_t> registered{0};     // bytes currently registered
  std::atomic<std::uint64_t> registrations{0};  // total since the start
  fid_ep* bound_to = nullptr;  // the endpoint that memory is bound to, if the provider needs FI_MR_ENDPOINT
};

// Returns the local address of an endpoint, active or listening.
Result<EndpointAddress> address_of(fid& endpoint);

// Closes a memory region and subtracts its bytes from Domain::registered. The domain outlives the region.
struct CloseRegion {
  Domain* domain = nullptr;
  std::size_t bytes = 0;
  void operator()(fid_mr* region) const;
};

// Memory that is registered with libfabric. Empty if the provider needs no registration for local access.
class Registration {
 public:
  // `access`: FI_SEND | FI_RECV, FI_READ (a landing) or FI_REMOTE_READ (a window, with a random key).
  static Result<Registration> make(Domain& domain, std::span<const std::byte> memory, std::uint64_t access);
  Registration() = default;

  void* descriptor() const { return region_ ? fi_mr_desc(region_.get()) : nullptr; }
  std::uint64_t key() const { return fi_mr_key(region_.get()); }
  void close() { region_.reset(); }

 private:
  std::unique_ptr<fid_mr, CloseRegion> region_;
};

// A buffer of kMessageBytesMax bytes.
struct MessageBuffer {
  std::span<std::byte> bytes;
  void* descriptor = nullptr;
};

// A pool of message buffers. It grows in registered blocks, as needed, and never shrinks. Not thread-safe.
class MessageBuffers {
 public:
  MessageBuffers(Domain& domain, std::size_t most) : domain_(domain), most_(most) {}

  // Nothing if all buffers are in use, or memory cannot be registered.
  std::optional<MessageBuffer> take();
  void give_back(const MessageBuffer& buffer) { free_.push_back(buffer); }
  void close_registrations();

 private:
  struct Block {
    std::vector<std::byte> memory;
    Registration registration;
  };
  Status add_block();

  Domain& domain_;
  const std::size_t most_;
  std::vector<Block> blocks_;
  std::vector<MessageBuffer> free_;
};

}  // namespace weft::net
