// Moves bytes between nodes (net/transport/fabric_transport.cc): small messages in both directions, and one-sided reads
// of memory that a peer has opened.
//
// Trust: none. Messages may come from anybody who reaches the endpoint, and a read returns the contents of the peer's
// memory. Sessions authenticate messages, digests verify bytes (weftd.8).
// Threads: every call from any thread. The receiver runs on a thread of the transport, one call at a time: it must be
// short, and may send, but not wait for a read. It leaves longer work to after_receiving() or to other threads.
// Lifetime: windows and landings are dropped before their transport; pending reads may outlive it.
// Waiting: nothing spins; an idle transport sleeps on a descriptor.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/result.h"

namespace weft {

// Small enough that every provider sends it at once. Larger messages would need a rendezvous and arrive out of order.
inline constexpr std::size_t kMessageBytesMax = 8U << 10U;

// The address of a transport, in its provider's notation. Only transports of one provider understand each other.
using EndpointAddress = std::vector<std::byte>;

// A peer of this transport. A transport never reuses an id.
using PeerId = std::uint64_t;

// The data that a peer needs to read a window. `key` is random: it gives the right to read and cannot be guessed.
struct RemoteWindow {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::uint64_t length = 0;
  bool operator==(const RemoteWindow&) const = default;
};

// Local memory that peers may read while this lives. A read in progress when it ends may still be answered. So the
// memory must stay mapped for as long as the transport lives, or hold only bytes that the reader was allowed to read.
class Window {
 public:
  virtual ~Window() = default;
  virtual RemoteWindow remote() const = 0;
};

// Local memory that reads write into, registered once for any number of reads. The transport keeps the
// landing and its owner until the last read into it ends, also an abandoned one. Transports over TCP register no
// landings: they also read into those of another transport of this process, which ends after them.
class Landing {
 public:
  virtual ~Landing() = default;
  virtual std::span<std::byte> bytes() const = 0;
  // True if no read into it is in flight or queued: nothing writes to it before the next read is requested.
  virtual bool idle() const = 0;
};

// One read in flight. Dropping it, or giving up the wait, sets the read aside: it may still write into its landing, but
// has no waiter.
class PendingRead {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~PendingRead() = default;
  // Waits until the read is over, at most until the deadline (Errc::timed_out). Errc::unreachable: the peer is gone.
  // Errc::permission: the peer does not know that window, or the range is outside of it.
  virtual Status wait(Clock::time_point deadline) = 0;
};

// A provider that "auto" rejected, and the reason.
struct PassedOver {
  std::string provider, reason;
};

struct TransportCounters {
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t reads_done = 0;
  std::uint64_t registrations = 0;  // of windows, landings and message buffers
  std::uint64_t half_open = 0;      // incoming connections that are not established yet

  TransportCounters& operator+=(const TransportCounters& more);
};

class Transport {
 public:
  // `message` is valid during the call.
  using Receiver = std::function<void(std::span<const std::byte> message)>;

  virtual ~Transport() = default;

  virtual const std::string& provider() const = 0;
  // Returns the providers of higher rank that were rejected; none if the configuration named one.
  virtual std::span<const PassedOver> passed_over() const { return {}; }
  virtual const EndpointAddress& address() const = 0;
  virtual TransportCounters counters() const = 0;

  // Errc::invalid: the address is not one of this provider. Sends nothing: the peer need not be there.
  virtual Result<PeerId> add_peer(std::span<const std::byte> address) = 0;
  // Returns the registered memory that hardware holds in place; 0 if it holds none.
  virtual std::uint64_t pinned_bytes() const { return 0; }
  // Later sends and reads to the peer are refused. Waits for its reads in flight end with Errc::unreachable.
  virtual void remove_peer(PeerId peer) = 0;

  // Returns how often a connection to the peer has ended: each time the peer may have restarted. Nothing if the
  // provider does not report that.
  virtual std::optional<std::uint64_t> ends(PeerId /*peer*/) const { return {}; }

  // Returns how many attempts to connect to the peer have failed, for example because nobody listens. Only grows. 0 if
  // the provider does not report that.
  virtual std::uint64_t failures(PeerId /*peer*/) const { return 0; }

  // Queues a copy of a message of 1 to kMessageBytesMax bytes. Messages to one peer arrive whole, in order and at most
  // once, or are lost with the peer. Errc::busy: too many are unsent to this peer.
  virtual Status send(PeerId peer, std::span<const std::byte> message) = 0;

  // Called by the receiver only. True: the receiver's thread runs `job` once another thread receives in its place;
  // `job` may take long and wait for anything. False: no other thread is free, and `job` is dropped.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): an implementation keeps the job
  virtual bool after_receiving(std::function<void()> /*job*/) { return false; }

  // Called by the receiver only. Returns the address of the node's end of the connection that brought the message, as
  // far as the provider and the message say; or an empty one.
  virtual EndpointAddress sender() const { return {}; }

  // `memory` is only read, and stays valid until the window is closed (see Window).
  virtual Result<std::unique_ptr<Window>> open_window(std::span<const std::byte> memory) = 0;
  virtual Result<std::shared_ptr<Landing>> open_landing(std::span<std::byte> memory,
                                                        std::shared_ptr<const void> owner) = 0;
  // Reads `length` bytes from `offset` of the window into the landing, from `at` on. Errc::invalid: outside of the
  // landing. Errc::permission: outside of the window.
  virtual Result<std::unique_ptr<PendingRead>> read(PeerId peer, const RemoteWindow& window, std::uint64_t offset,
                                                    std::shared_ptr<Landing> landing, std::size_t at,
                                                    std::size_t length) = 0;
};

struct TransportOptions {
  std::string provider = "auto";  // or "auto-tcp", or the name of one: verbs, efa, cxi, psm3, psm2, net, tcp
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  Transport::Receiver receiver;
};

// Opens a transport that passes its messages to `receiver`.
using MakeTransport = std::function<Result<std::unique_ptr<Transport>>(Transport::Receiver receiver)>;

// Opens a transport over libfabric. "auto" takes the first of verbs, efa, cxi, psm3, psm2, net, tcp that starts: it has
// one-sided reads on this host, can wait on a descriptor, and may lock the memory that it needs. "auto-tcp" takes the
// first of net, tcp. The log names the provider and the rejected ones. Errc::unsupported: the message says what each
// lacks. Sets FI_MR_CACHE_MONITOR of this process: call it first before other threads read their environment.
Result<std::unique_ptr<Transport>> open_fabric_transport(const TransportOptions& options);
bool is_over_tcp(std::string_view provider);

}  // namespace weft
