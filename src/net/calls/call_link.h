// The caller's end of a session: its calls that wait for an answer. Any thread; receive() on the transport's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "net/calls/channel.h"
#include "net/calls/peer_record.h"
#include "os/bell.h"
#include "weft/exchange.h"

namespace weft::net {

class CallLink {
 public:
  using Clock = std::chrono::steady_clock;
  CallLink(Transport& transport, PeerId peer, Session session, std::shared_ptr<PeerRecord> record)
      : channel_(transport, peer, std::move(session)), record_(std::move(record)) {}

  // How a call went, as far as this session can tell. `lost`: the session is no good, or the peer does not know it;
  // `again`: the peer does not know this call.
  enum class End : std::uint8_t { answered, failed, lost, again };
  struct Outcome {
    End end = End::lost;
    AnswerMessage answer;
    Error error;  // when it failed
  };
  Outcome call(std::span<const std::byte> request, Deadline deadline);
  void done(std::uint64_t call, std::uint64_t read_bytes);

  Heard receive(const FrameView& frame);
  void lose();  // all its calls are lost
  bool lost() const;
  void heard();            // a sign of life, such as a read that came
  void reading(int more);  // so many more reads are in flight: behind them a message may be late

  Channel& channel() { return channel_; }
  PeerRecord& record() { return *record_; }

 private:
  struct Waiting {
    std::optional<Outcome> outcome;
    std::shared_ptr<const Bell> bell;  // of the thread that waits
  };
  void settle(std::uint64_t call, Outcome outcome);
  bool take(const CallBody& body);
  Outcome wait(std::uint64_t call, Waiting& waiting, Deadline deadline);
  void forget(std::uint64_t call);
  Clock::duration silence() const;  // with mutex_ held, while calls wait

  Channel channel_;
  const std::shared_ptr<PeerRecord> record_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Waiting> waiting_;  // guarded by mutex_, as all that follows
  std::uint64_t next_call_ = 1;
  Clock::time_point heard_ = Clock::now();
  Clock::time_point asked_{};    // since when calls wait
  Clock::duration silent_ = {};  // for which earlier ones waited since something was heard
  int reads_ = 0;
  bool lost_ = false;
};

}  // namespace weft::net
