// Moves bytes between nodes: small messages both ways, and one-sided reads of memory that a peer has opened.
//
// Trust: none is made here. Messages may come from anybody who reaches the endpoint, and what a read brings is what the
// peer's memory held: sessions authenticate messages, digests verify bytes (weftd.8).
// Threads: every call from any thread. The receiver runs on a thread of the transport's own, one call at a time: it
// must be short, and may send, but not wait for a read. What takes longer it leaves to after_receiving(), or to others.
// Lifetime: windows and landings are dropped before their transport; pending reads may outlive it.
// Waiting: nothing spins; a transport without work sleeps on a descriptor.
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

// Small enough that every provider sends it at once: larger ones would need a rendezvous, and arrive out of order.
inline constexpr std::size_t kMessageBytesMax = 8U << 10U;

// Where a transport can be reached, as its provider writes it. Only transports of one provider understand each other.
using EndpointAddress = std::vector<std::byte>;

// A peer of this transport; never reused in one transport.
using PeerId = std::uint64_t;

// What a peer must know to read a window. `key` is random: who has it may read, who has not cannot guess it.
struct RemoteWindow {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::uint64_t length = 0;
  bool operator==(const RemoteWindow&) const = default;
};

// Memory of ours that peers may read while this lives. A read that is under way when it ends may still be answered: the
// memory must stay mapped for as long as the transport lives, or hold nothing that the reader could not have had.
class Window {
 public:
  virtual ~Window() = default;
  virtual RemoteWindow remote() const = 0;
};

// Memory of ours that reads land in, registered once and used for any number of reads. It is kept, with its owner,
// until the last read into it is over, also one that nobody waits for any more. Transports over TCP register no
// landings: they also read into those of another transport of this process, which ends after them.
class Landing {
 public:
  virtual ~Landing() = default;
  virtual std::span<std::byte> bytes() const = 0;
  // No read into it is in flight, nor waits to be sent: nothing will write to it before the next read is asked for.
  virtual bool idle() const = 0;
};

// One read in flight. Dropping it, or giving up the wait, sets the read aside: it may still write into its landing, and
// nobody waits for it.
class PendingRead {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~PendingRead() = default;
  // Until it is over, at most until the deadline (Errc::timed_out). Errc::unreachable: the peer is gone.
  // Errc::permission: the peer does not know that window, or the range is not in it.
  virtual Status wait(Clock::time_point deadline) = 0;
};

// A provider that "auto" did not use, and why.
struct PassedOver {
  std::string provider, reason;
};

struct TransportCounters {
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t reads_done = 0, reads_failed = 0, read_bytes = 0;
  std::uint64_t reads_in_flight = 0, reads_set_aside = 0;  // set aside: in flight, and nobody waits for it
  std::uint64_t registrations = 0;                         // of memory: of windows, landings and message buffers
  std::uint64_t half_open = 0;  // connections that others have begun, and that are not up yet

  TransportCounters& operator+=(const TransportCounters& more);
};

class Transport {
 public:
  // `message` is valid during the call.
  using Receiver = std::function<void(std::span<const std::byte> message)>;

  virtual ~Transport() = default;

  virtual const std::string& provider() const = 0;
  // The providers that came before this one and could not be used; none if it was asked for by name.
  virtual std::span<const PassedOver> passed_over() const { return {}; }
  virtual const EndpointAddress& address() const = 0;
  virtual TransportCounters counters() const = 0;

  // Errc::invalid for an address that is none of this provider's. Sends nothing: the peer need not be there.
  virtual Result<PeerId> add_peer(std::span<const std::byte> address) = 0;
  // The memory that hardware holds in place now: what is registered. 0 where nothing has to be.
  virtual std::uint64_t pinned_bytes() const { return 0; }
  // Later sends and reads to it are refused; its reads in flight end with Errc::unreachable for those who wait.
  virtual void remove_peer(PeerId peer) = 0;

  // How often a connection to the peer has ended: the peer may have restarted since. Nothing where the provider does
  // not tell.
  virtual std::optional<std::uint64_t> ends(PeerId /*peer*/) const { return {}; }

  // Attempts to connect to the peer that failed, such as where nobody listens; grows. 0 where the provider does not
  // tell.
  virtual std::uint64_t failures(PeerId /*peer*/) const { return 0; }

  // Queues a copy of a message of 1 to kMessageBytesMax bytes; to one peer they arrive whole, in order, at most once,
  // or are lost with the peer. Errc::busy when too many are unsent to this peer.
  virtual Status send(PeerId peer, std::span<const std::byte> message) = 0;

  // By the receiver alone. True: the thread that it runs on will run `job`, once another receives in its place; `job`
  // may take its time and wait for anything. False: there is no other thread now, and `job` is dropped.
  virtual bool after_receiving(std::function<void()> /*job*/) { return false; }

  // `memory` is only read, and stays until the window is closed (see Window).
  virtual Result<std::unique_ptr<Window>> open_window(std::span<const std::byte> memory) = 0;
  virtual Result<std::shared_ptr<Landing>> open_landing(std::span<std::byte> memory,
                                                        std::shared_ptr<const void> owner) = 0;
  // Brings `length` bytes from `offset` of the window to `at` of the landing. Errc::invalid when they do not fit there;
  // Errc::permission when they are not in the window.
  virtual Result<std::unique_ptr<PendingRead>> read(PeerId peer, const RemoteWindow& window, std::uint64_t offset,
                                                    std::shared_ptr<Landing> landing, std::size_t at,
                                                    std::size_t length) = 0;
};

struct TransportOptions {
  std::string provider = "auto";  // or "auto-tcp", or a provider's name: verbs, efa, cxi, psm3, psm2, net, tcp
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any
  Transport::Receiver receiver;
};

// A transport over libfabric. "auto" takes the first of verbs, efa, cxi, psm3, psm2, net, tcp that starts: it has
// one-sided reads on this host, can wait on a descriptor, and may lock the memory that it needs. "auto-tcp" takes the
// first of net, tcp. The log names it and those that were passed over. Errc::unsupported names what each lacked. Sets
// FI_MR_CACHE_MONITOR of this process: call it first before other threads read their environment.
Result<std::unique_ptr<Transport>> open_fabric_transport(const TransportOptions& options);
bool is_over_tcp(std::string_view provider);

}  // namespace weft
