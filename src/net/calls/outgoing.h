// The calls that this node makes, with sessions that are made on demand. Any thread; receive() only on the transport's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "net/calls/call_link.h"
#include "net/session/handshake.h"
#include "net/transport/landing_pool.h"
#include "weft/cluster/exchange.h"

namespace weft::net {

// So many failed attempts to connect show that no daemon listens there.
inline constexpr std::uint64_t kConnectsMax = 2;

class Outgoing {
 public:
  // `transport` outlives this.
  Outgoing(Transport& transport, Identity identity, std::shared_ptr<LandingPool> landings)
      : transport_(transport), identity_(std::move(identity)), landings_(std::move(landings)) {}

  // As Exchange::call.
  Result<std::unique_ptr<Answer>> call(const PeerAddress& peer, std::span<const std::byte> request, Deadline deadline,
                                       const OnSign& on_sign);

  // The parts of a call. admit() counts it. Errc::invalid: its request is too long, or is to this node itself.
  Status admit(const PeerAddress& peer, std::span<const std::byte> request);
  // Returns the session to a peer, which it makes if there is none. The first caller makes it; concurrent callers wait
  // for that one.
  Result<std::shared_ptr<CallLink>> link_to(const PeerAddress& address, Deadline deadline);
  std::shared_ptr<CallLink> open_link(const PeerAddress& address) const;  // null: there is no session
  // After the `tries`-th try of a call, without an answer: returns the error that ends the call; nothing if the call is
  // to be tried again. Drops a lost session.
  std::optional<Error> failed(const std::shared_ptr<CallLink>& link, CallLink::Outcome outcome, int tries,
                              Deadline deadline);
  // Drops a session whose peer has gone, and returns the error for its calls.
  Error gone(const std::shared_ptr<CallLink>& link);
  // `called`: a time before the request was sent.
  Result<std::unique_ptr<Answer>> open_answer(std::shared_ptr<CallLink> link, AnswerMessage message, Deadline called,
                                              Deadline deadline);

  // False if the frame is of no outgoing session, or is invalid.
  std::optional<PeerRefusal> receive(const FrameView& frame);
  // Ends the sessions that were made with a key that `keys` lacks. Their calls are made again in new sessions.
  void end_sessions_without(const KeyRing& keys);
  void close();  // ends all sessions, and attempts to make one
  void add_to(ExchangeFigures& figures) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    EndpointAddress address;
    std::shared_ptr<CallLink> link;  // may be null, or lost
    bool connecting = false;
    // Returns the session to this address; null if there is none.
    std::shared_ptr<CallLink> open_to(const EndpointAddress& wanted) const {
      return link && !link->lost() && address == wanted ? link : nullptr;
    }
    Clock::time_point failed_at{};
    Error failure;  // of the last handshake
  };
  Peer& peer_of(const PeerAddress& address);
  Result<std::shared_ptr<CallLink>> connect(const PeerAddress& address, Deadline deadline);
  Result<Caller::Agreed> shake_hands(PeerId peer, Deadline deadline);
  Result<std::vector<std::byte>> greet(PeerId peer, const Caller& caller, std::uint64_t session, Deadline deadline);
  Result<std::vector<std::byte>> send_hello(PeerId peer, std::uint64_t session, const std::vector<std::byte>& hello,
                                            Deadline deadline);
  void log_refusal(const std::string& node, const Error& error);
  void drop(const std::shared_ptr<CallLink>& link);
  std::shared_ptr<CallLink> find(std::uint64_t session) const;

  Transport& transport_;
  const Identity identity_;
  const std::shared_ptr<LandingPool> landings_;
  std::atomic<std::uint64_t> calls_{0}, handshakes_{0}, read_bytes_{0};

  RareLines refusal_lines_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Peer> peers_;  // guarded by mutex_, as the members below; by node
  std::unordered_map<std::uint64_t, std::shared_ptr<CallLink>> links_;  // by session
  bool ending_ = false;
  std::unordered_map<std::uint64_t, std::vector<std::byte>> welcomes_;  // of hellos; empty until it arrives; by session
};

// Returns a random session number, not 0.
std::uint64_t random_session();
// Returns the error of a call that ends with its exchange.
Error ended_error();

}  // namespace weft::net
