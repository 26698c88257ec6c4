// The libfabric endpoints of this node, which bring operations to peers: one for each connection (connections.h), or
// one of reliable datagrams (datagrams.h). A FabricTransport owns them, and drives them on its progress thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "net/transport/domain.h"
#include "net/transport/operation.h"
#include "weft/cluster/transport.h"

namespace weft::net {

// The route to one peer. Dropped before its Endpoints.
class Route {
 public:
  Route() = default;
  virtual ~Route() = default;
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;
};

class Endpoints {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Posts `count` receives on a connection; 0: for all connections. Called inside start(), then by the progress
    // thread alone.
    virtual void receive_on(ConnectionId connection, std::size_t count) = 0;
    virtual void wake() = 0;  // wakes the progress thread; any thread
  };

  virtual ~Endpoints() = default;
  virtual Domain& domain() = 0;
  virtual const EndpointAddress& address() const = 0;  // after start()
  virtual std::size_t posted_max() const = 0;          // operations in flight to one peer

  // Returns the address at the other end of a connection that another node made; an empty one if it is unknown.
  virtual EndpointAddress caller(ConnectionId /*connection*/) const { return {}; }

  virtual std::size_t half_open() const { return 0; }  // as in TransportCounters; any thread

  // Makes this node reachable. `owner` outlives close().
  virtual Status start(Owner& owner) = 0;
  // Ends the threads of this. Then close() closes all endpoints, so that libfabric writes to no memory of theirs.
  virtual void stop() = 0;
  virtual void close() = 0;

  // Any thread. FabricTransport has checked the address. Errc::invalid if the provider rejects it.
  virtual Result<std::shared_ptr<Route>> route(std::span<const std::byte> address) = 0;
  // Any thread. Returns 0, -FI_EAGAIN (try again later), or another error, which is final.
  virtual long post(Route& route, Operation& operation) = 0;
  virtual long post_receive(MessageOperation& receive) = 0;
  // As Transport::ends and failures. Any thread.
  virtual std::optional<std::uint64_t> ends(Route& /*route*/) const { return {}; }
  virtual std::uint64_t failures(Route& /*route*/) const { return 0; }

  // Reports a completion of an operation on a connection; completed_own(): of an operation that this itself posted.
  // Called by the progress thread, as poll().
  virtual void completed(ConnectionId connection, bool well, std::size_t received) = 0;
  virtual void completed_own(const void* context, bool well) = 0;
  // Does timed work between completions. True if it should be called again soon.
  virtual bool poll() = 0;
};

// Posts a send, with the operation's `data` if it is not 0, or a read.
long post_to(fid_ep* endpoint, fi_addr_t peer, Operation& operation);
long post_receive_on(fid_ep* endpoint, MessageOperation& receive);

}  // namespace weft::net
