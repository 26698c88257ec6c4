// How long TCP below an endpoint waits for a peer from which nothing comes. By itself it sends again after ever longer
// pauses, of up to two minutes: when a link is back that was cut for long, nobody would talk for as long as that. An
// end that sends nothing would never learn that the other is gone, and libfabric 1.17 refuses the peer's next
// connection for as long as it has the one before. Its tcp providers have no setting for either, so their sockets are
// told.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

namespace weft::net {

// A connection over which nothing was acknowledged for so long is ended, by both ends, and made anew when it is needed.
// Also one that is being made: then there is another try, without the pauses of the last one.
inline constexpr std::chrono::seconds kTcpPatience{10};

// Bounds the sockets of an endpoint with this address that are not bounded yet, and with its listening one all that it
// will accept; connections that it makes have to be looked for again. Does nothing where addresses are not IP's.
// Looks at every descriptor of the process. Any thread.
void bound_tcp_patience(std::span<const std::byte> address);

}  // namespace weft::net
