// One end of the raw loop: libfabric connections (FI_EP_MSG) made like weft's, without weft's protocol.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/transport/domain.h"
#include "net/transport/event.h"
#include "net/transport/listener.h"

namespace weft::bench {

// Not thread-safe. Memory registered with domain() must be released before this is destroyed.
class RawEnd {
 public:
  // Listens. Needs a provider with connections: verbs, net, tcp. Errc::unsupported for others.
  static Result<std::unique_ptr<RawEnd>> listening(const std::string& provider, const std::string& host);
  // Connects and waits for the connection. Errc::unreachable, Errc::timed_out.
  static Result<std::unique_ptr<RawEnd>> connected(const std::string& provider, const std::string& host,
                                                   std::span<const std::byte> address);

  net::Domain& domain() { return *domain_; }
  const EndpointAddress& address() const { return listener_->address(); }  // of a listening end
  fid_ep* endpoint() { return endpoints_.front().get(); }                  // of a connected end

  // Listening end: accepts connections and serves reads, for 0.1 s at most.
  Status serve_a_while();

 private:
  static Result<std::unique_ptr<RawEnd>> open(net::InfoPtr info);
  Result<fid_ep*> add(fi_info& info);
  Status await_connection();

  std::unique_ptr<net::Domain> domain_;
  net::FidPtr<fid_eq> events_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<net::FidPtr<fid_ep>> endpoints_;
  std::size_t new_ = 0;  // accepted, but not connected yet
};

}  // namespace weft::bench
