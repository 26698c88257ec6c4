// One end of the raw loop: connections of libfabric (FI_EP_MSG), as weft makes them, and nothing around them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/transport/domain.h"
#include "net/transport/event.h"
#include "net/transport/listener.h"

namespace weft::bench {

// Not thread-safe. What is registered with its domain ends before it.
class RawEnd {
 public:
  // Of a provider that has connections: verbs, net, tcp. Errc::unsupported.
  static Result<std::unique_ptr<RawEnd>> listening(const std::string& provider, const std::string& host);
  // Returns when it is connected. Errc::unreachable, Errc::timed_out.
  static Result<std::unique_ptr<RawEnd>> connected(const std::string& provider, const std::string& host,
                                                   std::span<const std::byte> address);

  net::Domain& domain() { return *domain_; }
  const EndpointAddress& address() const { return listener_->address(); }  // of one that listens
  fid_ep* endpoint() { return endpoints_.front().get(); }                  // of one that is connected

  // Of one that listens: accepts who calls and serves who reads, for 0.1 s at most.
  Status serve_a_while();

 private:
  static Result<std::unique_ptr<RawEnd>> open(net::InfoPtr info);
  Result<fid_ep*> add(fi_info& info);
  Status await_connection();

  std::unique_ptr<net::Domain> domain_;
  net::FidPtr<fid_eq> events_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<net::FidPtr<fid_ep>> endpoints_;
  std::size_t new_ = 0;  // accepted, and not connected yet
};

}  // namespace weft::bench
