// Authenticated calls between the daemons of a cluster (net/calls/exchange.cc). A call has a request and an answer. The
// answer may open windows on the peer's memory, which the caller then reads one-sided (weft/cluster/transport.h).
//
// Trust: both ends of a call have proved that they hold the cluster's key, and which node they are. Requests and heads
// of answers come from that node, unchanged and once. The bytes of a window are not authenticated: their reader checks
// them against a digest. Messages are encrypted, windows are not. Requests are untrusted all the same: a node with the
// key may be compromised. Threads: every call from any thread; calls to one peer run at once. Waiting: progress decides
// (weft/deadline.h). A call without an OnSign returns by its deadline. With one, a wait ends when the peer has been
// silent for the caller's patience; so does the wait of a begun call. Memory is bounded by limits.h for each endpoint,
// whatever peers and strangers send. Lifetime: answers, landings and buffers are dropped before their exchange.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/bytes/window_memory.h"
#include "weft/cluster/key_change.h"
#include "weft/cluster/transport.h"
#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kRequestBytesMax = 7U << 10U;
inline constexpr std::size_t kHeadBytesMax = 1U << 20U;
// A head of at most this size, less 40 bytes for each window, is sent with the answer: one round trip.
inline constexpr std::size_t kShortHeadBytesMax = 7U << 10U;
inline constexpr std::size_t kAnswerWindowsMax = 64;          // per answer
inline constexpr std::uint64_t kAnswerBytesMax = 64U << 20U;  // in all windows of an answer
inline constexpr std::size_t kLandingBufferBytes = 1U << 20U;

// Called by the waiting thread at each sign of life of the peer: other bytes or answers arrived, or the call is queued
// at the peer. If it returns false, the wait ends with Errc::cancelled.
using OnSign = std::function<bool()>;

// An address at which an exchange can be called.
struct Endpoint {
  std::string provider;
  EndpointAddress address;
};

struct PeerAddress {
  std::string node;  // its id, which the peer must prove
  EndpointAddress address;
  std::string provider = {};  // for this address; "": that of the caller's first endpoint
};

// Receives the bytes of a reply's windows that their reader has read.
using ReplyEnded = std::function<void(std::uint64_t read_bytes)>;

// The answer to a request.
struct PeerReply {
  std::vector<std::byte> head;                         // at most kHeadBytesMax
  std::vector<std::unique_ptr<WindowMemory>> windows;  // each no longer than the peer may read
  std::string subject = {};  // window contents, for the log if the reader falls silent: "bert@1: model.safetensors"
  // Called once after give(): when the windows are closed, or at once after a reply without windows was sent. The
  // caller reports how many bytes of the windows it has read, never more than they have. 0: it has read none, the
  // report was lost, the session or the lease has ended, or the reply was unwanted or could not be sent. Called on a
  // thread of the exchange before that ends, never on the transport's; for an unwanted reply also within give(). Must
  // not wait.
  ReplyEnded ended = {};
};

// The receiving end of the reply to one request. Any thread.
class ReplyTaker {
 public:
  virtual ~ReplyTaker() = default;
  virtual void give(Result<PeerReply> reply) = 0;  // once
  virtual bool wanted() const = 0;
};

// A reply that a server owes. Without one it replies Errc::unreachable when it is dropped, so no caller waits in vain.
// It may outlive the caller's session and the exchange. Any thread may use it, one at a time.
class PendingReply {
 public:
  explicit PendingReply(std::shared_ptr<ReplyTaker> taker) : taker_(std::move(taker)) {}
  ~PendingReply() { give(Error{Errc::unreachable, "this node has dropped the request"}); }
  PendingReply(PendingReply&&) noexcept = default;
  PendingReply& operator=(PendingReply&& other) noexcept {
    PendingReply before(std::exchange(taker_, std::exchange(other.taker_, nullptr)));
    return *this;
  }

  // Returns at once: a thread of the exchange opens the windows and sends the reply. The first reply counts. A reply
  // that is no longer wanted has no effect.
  void give(Result<PeerReply> reply) {
    if (const auto taker = std::exchange(taker_, nullptr)) taker->give(std::move(reply));
  }
  // False once a reply was given, the caller has given up, its session has ended, or the exchange has ended.
  bool wanted() const { return taker_ && taker_->wanted(); }

 private:
  std::shared_ptr<ReplyTaker> taker_;
};

// Answers requests. Called on threads of the exchange, several at once, and never on the transport's thread. A request
// may come twice if its answer was lost, so answering must change nothing, or the same thing again.
class PeerServer {
 public:
  virtual ~PeerServer() = default;
  // Gives the reply, or keeps `reply` and returns: a request that waits in the server holds no thread. `node`, the
  // caller's proved id, and `request` are valid during the call. The caller receives the code and the message (cut to 1
  // KiB) of an error. If too many replies are pending when this returns (limits.h), the exchange replies Errc::busy,
  // and `reply` is unwanted.
  virtual void receive(std::string_view node, std::span<const std::byte> request, PendingReply reply) {
    reply.give(answer(node, request));
  }
  // Returns the reply to a request that needs no wait for other requests. It may take time, for example to read from a
  // disk, and may call other peers.
  virtual Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) = 0;
  // Called after replies to this node that were pending are no longer wanted, for another reason than give().
  // PendingReply::wanted() tells which. When the exchange ends, the thread that destroys it makes these calls. Must not
  // wait.
  virtual void unwanted(std::string_view /*node*/) {}
};

// A read of a window. It is a PendingRead, with the errors of weft/cluster/transport.h.
using WindowRead = std::unique_ptr<PendingRead>;

// An answer, with its windows open. Dropping it tells the peer to close the windows, or, if reads of them are
// in flight, leaves that to the end of their lease. Not thread-safe, but its reads are.
class Answer {
 public:
  virtual ~Answer() = default;

  virtual std::span<const std::byte> head() const = 0;
  virtual std::size_t windows() const = 0;
  virtual std::uint64_t length(std::size_t window) const = 0;
  // The windows are certainly open until then; wait() extends it. A byte that arrives later may come from withdrawn
  // memory, which holds zeros.
  virtual Deadline open_until() const = 0;
  // Reads `length` bytes from `offset` of a window into the landing, from `at` on. Errc::permission: outside of the
  // window. Errc::invalid: outside of the landing. Errc::unreachable: the peer is gone. Several reads may be in flight.
  // Avoid dropping a read before it has ended: the landing that it may still write to is set aside.
  virtual Result<WindowRead> read(std::size_t window, std::uint64_t offset, std::shared_ptr<Landing> landing,
                                  std::size_t at, std::size_t length) = 0;
  // Waits for a read of this answer, and keeps the windows open meanwhile. Errc::timed_out: the peer was silent for
  // `patience`.
  virtual Status wait(PendingRead& read, std::chrono::milliseconds patience, const OnSign& on_sign) = 0;
  // Keeps the windows open while the caller reads nothing; does not wait. Call it several times in kSignEvery. Returns
  // when the peer gave its last sign of life.
  virtual Deadline keep_open() = 0;
};

// One of a fixed number of registered buffers of kLandingBufferBytes. Dropped, it returns to the pool. If an abandoned
// read may still write to it, it is set aside and another takes its place.
class LandingBuffer {
 public:
  // `loan`: its last copy returns the buffer to the pool when it is dropped.
  LandingBuffer(std::shared_ptr<Landing> landing, std::shared_ptr<void> loan)
      : landing_(std::move(landing)), loan_(std::move(loan)) {}
  LandingBuffer(LandingBuffer&&) noexcept = default;
  LandingBuffer& operator=(LandingBuffer&&) noexcept = default;

  std::span<std::byte> bytes() const { return landing_->bytes(); }
  const std::shared_ptr<Landing>& landing() const { return landing_; }

 private:
  std::shared_ptr<Landing> landing_;
  std::shared_ptr<void> loan_;
};

// Receives the outcome of a begun call, once.
using CallDone = std::function<void(Result<std::unique_ptr<Answer>> outcome)>;

// Why a message or a handshake of the network was refused:
// - malformed: it is no message of weft.
// - unknown_session: its session is over, or never was.
// - not_authentic: the holder of the session's key did not send it, or it is a replay.
// - wrong_key, wire_version: the hello of a daemon with another key, or of another version.
// - crowded: too many handshakes at once.
// - abandoned: a handshake that was not completed, also after a hello with a wrong key.
enum class PeerRefusal : std::uint8_t {
  malformed,
  unknown_session,
  not_authentic,
  wrong_key,
  wire_version,
  crowded,
  abandoned,
};
inline constexpr std::array kPeerRefusalNames{"malformed",    "unknown-session", "not-authentic", "wrong-key",
                                              "wire-version", "crowded",         "abandoned"};

// Figures of all endpoints together.
struct ExchangeFigures {
  std::vector<PassedOver> passed_over;                             // providers that could not be used
  std::uint64_t sessions = 0;                                      // open ones, incoming and outgoing
  std::uint64_t handshakes = 0;                                    // completed ones
  std::uint64_t half_open = 0;                                     // peers that have said hello and proved nothing yet
  std::uint64_t calls = 0;                                         // calls made
  std::uint64_t begun = 0;                                         // begun calls without an outcome
  std::uint64_t answers = 0;                                       // answers given
  std::uint64_t pending = 0;                                       // replies that the server has kept for later
  std::uint64_t busy = 0;                                          // calls of peers that were refused because of load
  std::uint64_t refused = 0;                                       // the sum of refusals
  std::array<std::uint64_t, kPeerRefusalNames.size()> refusals{};  // by PeerRefusal
  std::uint64_t windows = 0;                                       // open windows
  std::uint64_t window_bytes = 0;                                  // bytes in open windows
  std::uint64_t lease_ends = 0;     // answers whose windows were closed at the end of their lease
  std::uint64_t read_bytes = 0;     // from windows of peers
  std::uint64_t served_bytes = 0;   // from our windows, as their readers report
  std::uint64_t pinned_bytes = 0;   // memory that hardware holds in place
  std::uint64_t buffers_aside = 0;  // landing buffers that abandoned reads may still write to
  TransportCounters transport;
};

// Returns the text of an address of a transport, for the log.
using AddressText = std::function<std::string(std::span<const std::byte> address)>;

struct ExchangeOptions {
  // As TransportOptions. With "auto", an exchange over hardware has a second endpoint over TCP, for nodes without this
  // hardware.
  std::string provider = "auto";
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  // The transports of the endpoints, the best first. Empty: libfabric's, by the three options above.
  std::vector<MakeTransport> transports;
  std::string node;  // this node's id
  // The cluster's key: 32 to 4,096 bytes that only its owner can read. While the cluster changes its key, KEY_FILE.next
  // or KEY_FILE.previous has a second key that is accepted too.
  std::string key_file;
  PeerServer* server = nullptr;  // outlives the exchange; null: every call is refused
  unsigned threads = 4;          // threads that answer
  AddressText address_text = {};
};

// Errc::permission, Errc::invalid: the file, or one beside it, is no key of a cluster, or other users can read it.
Status check_cluster_key(const std::string& key_file);

class Exchange {
 public:
  // Errc::permission, Errc::invalid: the key file, with the reason. Errc::unsupported: no such provider on this host;
  // the message says what each lacks.
  static Result<std::unique_ptr<Exchange>> open(const ExchangeOptions& options);
  struct Impl;
  explicit Exchange(std::unique_ptr<Impl> impl);
  // Waits for answers in progress. Pending replies become unwanted, begun calls end. Not on a thread of the exchange.
  ~Exchange();

  // Returns the addresses of this exchange, the best first.
  std::span<const Endpoint> endpoints() const;
  // Returns the Member::key_proof of a node that accepts the same keys as this node: 32 hex digits for each, separated
  // by commas.
  std::string key_proof(std::string_view node) const;
  // True if this is the Member::key_proof of a node that accepts a key of this node, so that they can call each other.
  bool accepts_proof(std::string_view node, std::string_view proof) const;
  // True if this Member::key_proof shows that the node accepts the key of this name, which this node accepts too.
  bool shows_key(std::string_view node, std::string_view proof, std::string_view name) const;
  // Returns public names of the accepted keys: 16 hex digits of their ids. The first key is the one that is proved.
  std::vector<std::string> key_names() const;
  // The files of the keys (weft/cluster/key_change.h), as they are now. Errors as check_cluster_key().
  Result<KeyState> key_state() const;
  // Returns an order to accept the key of this name, which this node proves or accepts as the next one; "": a new key,
  // which becomes KeyState::made.
  Result<KeyOrder> key_order(const std::string& name) const;
  // Does a step of a change of the key in the files, and then as reload_keys(). Errors as KeyFollower::follow().
  Status change_key(const KeyOrder& order);
  // Reads the keys again. Sessions with a key that is still accepted go on, the others end, and their calls are made
  // again in new sessions. After an error, nothing has changed.
  Status reload_keys();

  // Connects if there is no session. Errc::unsupported: the provider is not one of endpoints(). Errc::timed_out at the
  // deadline. Errc::permission: the peer at this address accepts no key of this node, or is another node.
  // Errc::busy: the peer is overloaded. Other errors are those of the peer's server. A session that the peer has
  // forgotten is replaced. With `on_sign`, each sign of life moves the deadline: it is then as far away as at the call.
  Result<std::unique_ptr<Answer>> call(const PeerAddress& peer, std::span<const std::byte> request, Deadline deadline,
                                       const OnSign& on_sign = {});

  // Begins a call that no thread waits for, and returns at once. `done` is called on a thread of the exchange, never on
  // the transport's, with the answer or an error of call(). Each sign of life moves the deadline, as with an OnSign, so
  // Errc::timed_out means that the peer has given nothing for `patience`. Errc::busy also: too many begun calls, to
  // this node or in all (limits.h). Errc::cancelled: the exchange ends. A few threads make the sessions for all begun
  // calls; a call whose turn does not come within `patience` fails with Errc::timed_out.
  // A few threads call `done`, so it is short. It may begin other calls, but not after Errc::cancelled: the thread that
  // calls begin() then calls their `done`.
  void begin(const PeerAddress& peer, std::span<const std::byte> request, std::chrono::milliseconds patience,
             CallDone done);

  // Returns a free buffer. Errc::busy: none was free by the deadline.
  Result<LandingBuffer> landing(Deadline deadline);
  // Registers memory of the caller to read into. Errc::unsupported: this provider cannot do that. Keeps `owner` until
  // the last read into the memory is over, also an abandoned one: until then (Landing::idle) a late read may write
  // there.
  Result<std::shared_ptr<Landing>> register_landing(std::span<std::byte> memory, std::shared_ptr<const void> owner);

  std::uint64_t pinned_bytes() const;  // as in the figures, but cheaper
  ExchangeFigures figures() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
