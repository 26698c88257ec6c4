// Authenticated calls between the daemons of a cluster: a request, and an answer that may open windows on the other's
// memory, which are then read one-sided (weft/transport.h).
//
// Trust: whoever is called, or calls, has proved to hold the cluster's key, and to be the node it says; requests and
// heads of answers came from it, unchanged and once. What is read from a window is not authenticated: it is checked
// against its digest by whoever uses it. Messages are encrypted, windows are not. Requests are hostile bytes all the
// same: a node that holds the key may be broken. Threads: every call from any thread; calls to one peer run at once.
// Waiting: progress decides (weft/deadline.h). A call without an OnSign returns by its deadline. With one, a wait ends
// when the peer has been silent for the caller's patience. Memory is bounded, whatever peers and strangers send:
// limits.h, for each endpoint. Lifetime: answers, landings and buffers are dropped before their exchange.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/deadline.h"
#include "weft/result.h"
#include "weft/transport.h"
#include "weft/window_memory.h"

namespace weft {

inline constexpr std::size_t kRequestBytesMax = 7U << 10U;
inline constexpr std::size_t kHeadBytesMax = 1U << 20U;
// A head of at most so many bytes, less 40 for each window, comes with the answer itself: one round trip.
inline constexpr std::size_t kShortHeadBytesMax = 7U << 10U;
inline constexpr std::size_t kAnswerWindowsMax = 64;          // of one answer
inline constexpr std::uint64_t kAnswerBytesMax = 64U << 20U;  // in them
inline constexpr std::size_t kLandingBufferBytes = 1U << 20U;

// Called by the thread that waits, at each sign that the peer lives: other bytes or answers of it came, or the call is
// queued there. False: the caller wants it no longer, and the wait ends with Errc::cancelled.
using OnSign = std::function<bool()>;

// Where an exchange can be called.
struct Endpoint {
  std::string provider;
  EndpointAddress address;
};

struct PeerAddress {
  std::string node;  // its id; who answers must prove to be it
  EndpointAddress address;
  std::string provider = {};  // of the address; "": that of the caller's first endpoint
};

// What is given to a request.
struct PeerReply {
  std::vector<std::byte> head;                         // at most kHeadBytesMax
  std::vector<std::unique_ptr<WindowMemory>> windows;  // of the sizes that the asker is to read, at most
  std::string subject = {};  // of the windows, for the log if their reader falls silent: "bert@1: model.safetensors"
};

// Whoever answers. On threads of the exchange, several at once; never on the transport's thread. May take time, as
// reading from a disk does, and may call other peers. A request may come twice, when its answer was lost: answering
// changes nothing, or the same thing again.
class PeerServer {
 public:
  virtual ~PeerServer() = default;
  // `node` is the caller's id, proved. The error's code and message (cut to 1 KiB) go to the caller.
  virtual Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) = 0;
};

// A read of a window. As PendingRead (weft/transport.h), whose errors it has.
using WindowRead = std::unique_ptr<PendingRead>;

// An answer, with its windows open. Movable; dropping it tells the other that its windows can be closed, or, when reads
// of them are still in flight, leaves that to the end of their lease. Not thread-safe, but its reads are.
class Answer {
 public:
  class Impl;
  explicit Answer(std::unique_ptr<Impl> impl);
  Answer(Answer&& other) noexcept;
  Answer& operator=(Answer&& other) noexcept;
  ~Answer();

  std::span<const std::byte> head() const;
  std::size_t windows() const;
  std::uint64_t length(std::size_t window) const;
  // The windows are open for sure until then; wait() puts it off. A byte that comes later may be one of withdrawn
  // memory, which holds zeros.
  Deadline open_until() const;
  // Brings `length` bytes from `offset` of a window to `at` of the landing. Errc::permission when they are not in the
  // window, Errc::invalid when they do not fit into the landing, Errc::unreachable when the peer is gone. Several may
  // be in flight; drop none without having waited for it, if it can be helped: what it may still write to is set aside.
  Result<WindowRead> read(std::size_t window, std::uint64_t offset, std::shared_ptr<Landing> landing, std::size_t at,
                          std::size_t length);
  // Waits for a read of this answer, and keeps the windows open meanwhile. Errc::timed_out if the peer was silent for
  // `patience`.
  Status wait(PendingRead& read, std::chrono::milliseconds patience, const OnSign& on_sign);

 private:
  std::unique_ptr<Impl> impl_;
};

// A buffer of kLandingBufferBytes out of a fixed number, registered once. Dropped, it goes back to the others; while a
// read that was given up may still write to it, it is set aside, and another takes its place.
class LandingBuffer {
 public:
  class Impl;
  explicit LandingBuffer(std::unique_ptr<Impl> impl);
  LandingBuffer(LandingBuffer&& other) noexcept;
  LandingBuffer& operator=(LandingBuffer&& other) noexcept;
  ~LandingBuffer();

  std::span<std::byte> bytes() const { return landing()->bytes(); }
  const std::shared_ptr<Landing>& landing() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// A peer that was called; rates are moving averages, 0 before the first.
struct PeerFigures {
  std::string node;
  bool connected = false;
  std::uint64_t calls = 0, failures = 0;  // failures: calls without an answer; an error is one
  std::uint64_t read_bytes = 0;           // from its windows
  std::uint64_t answers = 0;              // to its calls
  double answer_ms = 0;                   // between a call and its answer
  double read_bytes_per_second = 0;       // while reads of one answer were in flight
};

// Of all endpoints together.
struct ExchangeFigures {
  std::vector<PassedOver> passed_over;  // providers that could not be used
  std::uint64_t sessions = 0;           // that are open, both ways
  std::uint64_t handshakes = 0;         // that were completed
  std::uint64_t half_open = 0;          // strangers that have said hello and proved nothing yet
  std::uint64_t calls = 0;              // made
  std::uint64_t answers = 0;            // given
  std::uint64_t busy = 0;               // calls of others that were turned away: too many
  std::uint64_t refused = 0;            // malformed frames, wrong keys and tags, replays; frames of unknown sessions
  std::uint64_t windows = 0;            // open now
  std::uint64_t window_bytes = 0;       // in them
  std::uint64_t lease_ends = 0;         // answers whose windows were closed because nobody said done
  std::uint64_t read_bytes = 0;         // from windows of others
  std::uint64_t served_bytes = 0;       // from our windows, as their readers said
  std::uint64_t pinned_bytes = 0;       // that hardware holds in place now
  std::uint64_t buffers_aside = 0;      // landing buffers that a read may still write to, and nobody waits for
  TransportCounters transport;
  std::vector<PeerFigures> peers;  // by endpoint and node
};

struct ExchangeOptions {
  // As TransportOptions. With "auto" an exchange over hardware has a second endpoint, over TCP: for nodes without this
  // hardware.
  std::string provider = "auto";
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::string node;              // this node's id
  std::string key_file;          // the cluster's key: 32 to 4,096 bytes that only its owner can read
  PeerServer* server = nullptr;  // outlives the exchange; null: every call is turned away
  unsigned threads = 4;          // that answer
};

class Exchange {
 public:
  // Errc::permission, Errc::invalid: the key file, with the reason. Errc::unsupported: no such provider here, with what
  // each lacks.
  static Result<std::unique_ptr<Exchange>> open(const ExchangeOptions& options);
  struct Impl;
  explicit Exchange(std::unique_ptr<Impl> impl);
  ~Exchange();  // waits for answers that are being made
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // What others call this one by, the best first.
  std::span<const Endpoint> endpoints() const;

  // Connects when there is no session. Errc::unsupported: a provider that is none of endpoints(). Errc::timed_out at
  // the deadline; Errc::permission: whoever is at this address does not hold the cluster's key, or is another node;
  // Errc::busy: the peer has too much to do; else what its server said. A session that the peer no longer knows is made
  // anew. With `on_sign` each sign of the peer's life puts the deadline off, to as long after it as it is away now.
  Result<Answer> call(const PeerAddress& peer, std::span<const std::byte> request, Deadline deadline,
                      const OnSign& on_sign = {});

  // Errc::busy when none was free by the deadline.
  Result<LandingBuffer> landing(Deadline deadline);
  // Memory of the caller's own to read into; Errc::unsupported where this provider cannot.
  // `owner` is kept until the last read into it is over, also one that was given up: until then (Landing::idle) a late
  // read may write there.
  Result<std::shared_ptr<Landing>> register_landing(std::span<std::byte> memory, std::shared_ptr<const void> owner);

  std::uint64_t pinned_bytes() const;  // as in the figures, but at once
  ExchangeFigures figures() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
