// The calling end of a session: calls that wait for an answer, and leases of answers' windows. Any thread; receive()
// only on the transport's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "net/calls/call_wait.h"
#include "net/calls/channel.h"
#include "net/calls/window_lease.h"
#include "weft/cluster/exchange.h"

namespace weft::net {

class CallLink {
 public:
  using Clock = std::chrono::steady_clock;
  // `read_bytes`: counts the bytes read from windows, over all links. It outlives this.
  CallLink(Transport& transport, PeerId peer, Session session, std::atomic<std::uint64_t>& read_bytes)
      : channel_(transport, peer, std::move(session)), read_bytes_(read_bytes), ends_(transport.ends(peer)) {}

  // How a call ended. `lost`: the session is dead, or the peer does not know it. `again`: the peer does not know this
  // call.
  enum class End : std::uint8_t { answered, failed, lost, again };
  struct Outcome {
    End end = End::lost;
    AnswerMessage answer;
    Error error;  // if it failed
  };
  // Makes a call. This thread waits for the answer.
  Outcome call(std::span<const std::byte> request, CallWait& wait);
  // The same in parts. begin() returns the id of a call that is not sent yet; 0: the session is lost. `waiter` is woken
  // when the call has an outcome. Another thread may just be waking it when forget() returns.
  std::uint64_t begin(std::shared_ptr<CallWaiter> waiter);
  // Sends the request of a call. Errc::busy: too many messages are unsent. After another error the session is lost.
  Status send(std::uint64_t call, std::span<const std::byte> request);
  // Returns the outcome of a call that was sent, once it has one. Call it when the waiter is woken and at wait.next():
  // it asks the peer about the call, and gives up when the time is over.
  std::optional<Outcome> poll(std::uint64_t call, CallWait& wait);
  void forget(std::uint64_t call);  // ends every call that begin() began

  void done(std::uint64_t call, std::uint64_t read_bytes);

  Heard receive(const FrameView& frame);
  void lose();  // ends all waiting calls as lost
  bool lost() const;
  void gave(std::uint64_t bytes);  // records that a read of a window succeeded
  Deadline heard() const;          // the time of the last sign of life
  std::uint64_t failures() const;  // as Transport::failures
  // Leases of the windows of an answer. renew() asks the peer to keep them open, if a question is due.
  std::shared_ptr<WindowLease> lease(std::uint64_t call, Deadline called);
  void renew(std::uint64_t call, WindowLease& lease);
  void drop_lease(std::uint64_t call);

  Channel& channel() { return channel_; }

 private:
  struct Waiting {
    std::optional<Outcome> outcome;
    std::shared_ptr<CallWaiter> waiter;
    std::uint64_t questions = 0;
    Clock::time_point queued{};  // when the peer last reported the call as queued
  };
  void end_call(std::uint64_t call, Outcome outcome);
  bool take(const CallBody& body);
  void take(const KnownMessage& known);
  Outcome give_up(std::uint64_t call, Errc code);
  Clock::duration silence() const;  // with mutex_ held, while calls wait
  bool is_silent() const;           // with mutex_ held: the session counts as dead

  Channel channel_;
  std::atomic<std::uint64_t>& read_bytes_;
  const std::optional<std::uint64_t> ends_;  // Transport::ends of the peer when the session began
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Waiting> waiting_;                    // guarded by mutex_, as the members below
  std::unordered_map<std::uint64_t, std::weak_ptr<WindowLease>> leases_;  // by call
  std::uint64_t next_call_ = 1;
  Clock::time_point heard_ = Clock::now();
  Clock::time_point gave_{};     // when an answer or bytes last arrived
  Clock::time_point asked_{};    // since when calls wait
  Clock::duration silent_ = {};  // time that earlier calls waited since heard_
  bool lost_ = false;
};

}  // namespace weft::net
