// The calling end of a session: calls that wait for an answer, and leases of answers' windows. Any thread; receive()
// only on the transport's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "net/calls/channel.h"
#include "net/calls/window_lease.h"
#include "os/bell.h"
#include "weft/cluster/exchange.h"

namespace weft::net {

// Statistics of the calls to one peer. Any thread.
class PeerRecord {
 public:
  explicit PeerRecord(std::string node) { figures_.node = std::move(node); }

  void answered(std::chrono::duration<double> after);
  void failed();
  void set_other_key(bool other_key);
  // Records that `bytes` of one answer were read, with reads in flight for `in`.
  void read(std::uint64_t bytes, std::chrono::duration<double> in);
  PeerFigures figures() const;  // without `connected`

 private:
  mutable std::mutex mutex_;
  PeerFigures figures_;  // guarded by mutex_
};

class CallLink {
 public:
  using Clock = std::chrono::steady_clock;
  CallLink(Transport& transport, PeerId peer, Session session, std::shared_ptr<PeerRecord> record)
      : channel_(transport, peer, std::move(session)), record_(std::move(record)), ends_(transport.ends(peer)) {}

  // How a call ended. `lost`: the session is dead, or the peer does not know it. `again`: the peer does not know this
  // call.
  enum class End : std::uint8_t { answered, failed, lost, again };
  struct Outcome {
    End end = End::lost;
    AnswerMessage answer;
    Error error;  // if it failed
  };
  // With `on_sign`, each sign of the peer's life extends `deadline` to `patience` after the sign.
  Outcome call(std::span<const std::byte> request, Deadline& deadline, Clock::duration patience, const OnSign& on_sign);
  void done(std::uint64_t call, std::uint64_t read_bytes);

  Heard receive(const FrameView& frame);
  void lose();  // ends all waiting calls as lost
  bool lost() const;
  void gave();             // records that a read of a window succeeded
  Deadline heard() const;  // the time of the last sign of life
  // Leases of the windows of an answer. renew() asks the peer to keep them open, if a question is due.
  std::shared_ptr<WindowLease> lease(std::uint64_t call, Deadline called);
  void renew(std::uint64_t call, WindowLease& lease);
  void drop_lease(std::uint64_t call);

  Channel& channel() { return channel_; }
  PeerRecord& record() { return *record_; }

 private:
  struct Waiting {
    std::optional<Outcome> outcome;
    std::shared_ptr<const Bell> bell;  // of the waiting thread
    std::uint64_t questions = 0;
    Clock::time_point queued{};  // when the peer last reported the call as queued
  };
  void end_call(std::uint64_t call, Outcome outcome);
  bool take(const CallBody& body);
  void take(const KnownMessage& known);
  Outcome wait(std::uint64_t call, Waiting& waiting, Deadline& deadline, Clock::duration patience,
               const OnSign& on_sign);
  Outcome give_up(std::uint64_t call, Errc code);
  void forget(std::uint64_t call);
  Clock::duration silence() const;  // with mutex_ held, while calls wait
  bool is_silent() const;           // with mutex_ held: the session counts as dead

  Channel channel_;
  const std::shared_ptr<PeerRecord> record_;
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
