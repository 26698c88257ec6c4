// The calls that other nodes make: their handshakes, their sessions, and the windows opened for them. Any thread;
// receive() only on the transport's.
//
// Bounds of a node, whatever its peers ask (base/limits.h): kPeerCallsMax calls that are queued or in work, on a fixed
// number of threads; kPeerPendingMax calls whose replies the server gives later; kWindowsMax windows of
// kWindowBytesMax bytes, of which kWindowCopiesMax are copies and the others mapped packs. A peer has at most
// kPeerCallsEachMax calls, those with open windows included, and kPeerPendingEachMax pending ones. A call beyond fails
// with Errc::busy at once.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "base/thread_pool.h"
#include "net/calls/answer_link.h"
#include "net/calls/handshakes.h"
#include "net/calls/open_windows.h"
#include "net/calls/owed_reply.h"
#include "net/calls/refusals.h"
#include "weft/cluster/exchange.h"

namespace weft::net {

class Incoming {
 public:
  // `transport`, `server` and `refusals` outlive this; `server` may be null. `refusals` counts handshakes that are not
  // completed.
  Incoming(Transport& transport, Identity identity, PeerServer* server, Refusals& refusals, unsigned threads);
  ~Incoming();  // calls close()

  // Returns the reason if the frame is of no incoming session, or is invalid.
  std::optional<PeerRefusal> receive(const FrameView& frame);
  // Ends the sessions that were made with a key that `keys` lacks. Their callers make new ones.
  void end_sessions_without(const KeyRing& keys);
  void close();  // waits for answers in work; then closes all windows and sessions
  // Sends a reply that was given after PeerServer::receive() had returned. Returns at once.
  void reply_later(std::shared_ptr<OwedReply> owed);
  bool wants(std::uint64_t session, std::uint64_t call) const;  // true if the caller waits for the reply
  void add_to(ExchangeFigures& figures) const;

 private:
  using Clock = std::chrono::steady_clock;
  using LinkPtr = std::shared_ptr<AnswerLink>;
  struct Hello {
    std::vector<std::byte> frame;
    bool proved = false;  // made with the cluster's key
  };
  struct Lease {
    std::weak_ptr<AnswerLink> link;
    std::uint64_t call = 0;
  };
  // For the server.
  struct Reports {
    std::set<std::string> unwanted;            // nodes for PeerServer::unwanted()
    std::vector<std::function<void()>> ended;  // calls of PeerReply::ended
    bool none() const { return unwanted.empty() && ended.empty(); }
  };

  // Handshakes and sessions:
  bool queue_hello(const FrameView& frame);
  std::optional<PeerRefusal> confirm(const FrameView& frame);
  void welcome(const Hello& hello);
  bool welcome_again(const FrameView& hello);
  bool admits(const EndpointAddress& address, bool proved);
  void note_refusal(const Answerer& answerer);
  void add_half_open(std::uint64_t session, HalfOpen half);
  void add_session(Session session, PeerId peer);
  void end(const LinkPtr& link);
  LinkPtr find(std::uint64_t session) const;

  // The keeper thread: replies to hellos, ends leases and half-open handshakes:
  void keep();
  void keep_once(std::unique_lock<std::mutex>& lock);
  Clock::time_point next_due() const;
  void end_due(std::unique_lock<std::mutex>& lock);
  void end_lease(const LinkPtr& link, std::uint64_t call);

  // Calls (incoming_calls.cc):
  Heard hear(const LinkPtr& link, const FrameView& frame);
  bool take(const LinkPtr& link, const CallBody& body);
  void begin(const LinkPtr& link, const CallMessage& call);
  void submit(const LinkPtr& link, const CallMessage& call);
  bool queue_moves() const;
  void submitted();
  void answer(const LinkPtr& link, const CallMessage& call);
  void keep_pending(const LinkPtr& link, OwedReply& owed);
  void reply(const LinkPtr& link, std::uint64_t call, Result<PeerReply> reply);
  Status give(const LinkPtr& link, std::uint64_t call, PeerReply reply);
  void lease(const LinkPtr& link, std::uint64_t call, Clock::time_point until);
  void fail(const LinkPtr& link, std::uint64_t call, Error error);
  void done(const LinkPtr& link, const DoneMessage& done);
  void report_unwanted(const std::string& node);
  void report_ended(AnswerLink::Kept kept, std::uint64_t read_bytes);
  void report(const std::function<void(Reports&)>& add);
  void tell_server();

  Transport& transport_;
  const Identity identity_;
  PeerServer* const server_;
  Refusals& refusals_;
  WindowBudget windows_;
  const std::shared_ptr<ReplyGate> gate_ = std::make_shared<ReplyGate>(*this);
  std::atomic<std::uint64_t> answers_{0}, busy_{0}, handshakes_{0}, lease_ends_{0}, served_bytes_{0};
  std::atomic<std::size_t> calls_{0};  // queued or in work
  // The time at which a call or reply last left the queue of the workers.
  std::atomic<Clock::time_point> moved_at_{Clock::time_point{}};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Hello> hellos_;  // guarded by mutex_, as the members below
  Handshakes half_open_;
  RareLines refusal_lines_;
  std::unordered_map<std::uint64_t, LinkPtr> links_;  // by session
  std::map<std::string, std::uint64_t> session_of_;   // by node
  std::multimap<Clock::time_point, Lease> leases_;    // by the time of their next check
  Reports reports_;                                   // not passed to the server yet
  std::size_t submitting_ = 0;  // jobs being passed to workers, or calls answered by the transport's threads
  bool ending_ = false;
  std::thread keeper_;
  std::optional<ThreadPool> workers_;
};

}  // namespace weft::net
