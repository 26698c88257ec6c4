// How operations go to peers: over connections (connections.h), or over one endpoint of reliable datagrams
// (datagrams.h). A FabricTransport owns a wire, and drives it on its progress thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "net/transport/domain.h"
#include "net/transport/operation.h"
#include "weft/transport.h"

namespace weft::net {

// Leads to one peer. Dropped before its wire.
class Route {
 public:
  Route() = default;
  virtual ~Route() = default;
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;
};

class Wire {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Posts so many receives: on a connection, or 0: for all. By the progress thread alone.
    virtual void receive_on(ConnectionId connection, std::size_t count) = 0;
    virtual void wake() = 0;  // the progress thread; any thread
  };

  virtual ~Wire() = default;
  virtual Domain& domain() = 0;
  virtual const EndpointAddress& address() const = 0;  // after start()
  virtual std::size_t posted_max() const = 0;          // operations in flight to one peer

  virtual std::size_t half_open() const { return 0; }  // as in TransportCounters; any thread

  // From now on others reach this node. `owner` outlives the wire's close().
  virtual Status start(Owner& owner) = 0;
  // Ends its own threads; then close() ends all endpoints: libfabric writes to no memory any more.
  virtual void stop() = 0;
  virtual void close() = 0;

  // Any thread. The address was checked (FabricTransport). Errc::invalid: the provider does not take it.
  virtual Result<std::shared_ptr<Route>> route(std::span<const std::byte> address) = 0;
  // Any thread. 0; -FI_EAGAIN: not now; another error: not at all.
  virtual long post(Route& route, Operation& operation) = 0;
  virtual long post_receive(MessageOperation& receive) = 0;
  // As Transport::ends and failures. Any thread.
  virtual std::optional<std::uint64_t> ends(Route& /*route*/) const { return {}; }
  virtual std::uint64_t failures(Route& /*route*/) const { return 0; }

  // By the progress thread. A completion of an operation on this connection, or of one that is none of the transport's.
  virtual void completed(ConnectionId connection, bool well, std::size_t received) = 0;
  virtual void completed_own(const void* context, bool well) = 0;
  // Between completions: what happens with time. True: it wants to be called again soon.
  virtual bool look() = 0;
};

// fi_send, with data if there is some, or fi_read of an operation.
long post_to(fid_ep* endpoint, fi_addr_t peer, Operation& operation);
long post_receive_on(fid_ep* endpoint, MessageOperation& receive);

}  // namespace weft::net
