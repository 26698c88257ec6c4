// A reliable-datagram endpoint with all that belongs to it, and the buffers of its messages.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/transport/fabric.h"
#include "net/transport/provider.h"
#include "weft/transport.h"

namespace weft::net {

// Members are closed from the last to the first: the endpoint before what it is bound to.
struct Endpoint {
  // Opens and enables it. Errc::unsupported when its completion queue cannot be waited for on a descriptor.
  static Result<std::unique_ptr<Endpoint>> open(InfoPtr info);

  bool needs(std::uint64_t mr_mode) const { return (info->domain_attr->mr_mode & static_cast<int>(mr_mode)) != 0; }
  const char* provider() const { return info->fabric_attr->prov_name; }

  InfoPtr info;
  FidPtr<fid_fabric> fabric;
  FidPtr<fid_domain> domain;
  FidPtr<fid_cq> queue;
  FidPtr<fid_av> peers;
  FidPtr<fid_ep> endpoint;
  EndpointAddress address;

 private:
  Status make();
  Status find_address();
};

// Memory that libfabric knows. Without a registration where the provider needs none for local use.
class Registration {
 public:
  // `access`: FI_SEND | FI_RECV, FI_READ (reads land here) or FI_REMOTE_READ (peers read here, by a random key).
  static Result<Registration> make(Endpoint& endpoint, std::span<const std::byte> memory, std::uint64_t access);
  Registration() = default;

  void* descriptor() const { return region_ ? fi_mr_desc(region_.get()) : nullptr; }
  std::uint64_t key() const { return fi_mr_key(region_.get()); }
  void close() { region_.reset(); }

 private:
  FidPtr<fid_mr> region_;
};

// Message buffers of kMessageBytesMax each, registered once. Not thread-safe.
class MessageBuffers {
 public:
  static Result<std::unique_ptr<MessageBuffers>> make(Endpoint& endpoint, std::size_t count);

  std::span<std::byte> take();  // empty when all are taken
  void give_back(std::span<std::byte> buffer) { free_.push_back(buffer.data()); }
  void* descriptor() const { return registration_.descriptor(); }
  void close_registration() { registration_.close(); }

 private:
  std::vector<std::byte> memory_;
  std::vector<std::byte*> free_;
  Registration registration_;
};

}  // namespace weft::net
