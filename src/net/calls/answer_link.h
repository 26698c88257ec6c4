// The answering end of a session: the peer's calls, and the windows opened for them. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/calls/channel.h"
#include "net/calls/open_windows.h"

namespace weft::net {

class AnswerLink {
 public:
  using Clock = std::chrono::steady_clock;
  AnswerLink(Transport& transport, PeerId peer, Session session) : channel_(transport, peer, std::move(session)) {}

  Channel& channel() { return channel_; }

  // Adds a call. False if it is known already, the peer has too many calls, or the session is over.
  bool begin(std::uint64_t call);
  void work(std::uint64_t call);  // marks the call as in work
  // Records that the server will give the reply later: the call no longer counts as in work. Errc::busy: this peer has
  // too many such calls. Errc::cancelled: nobody waits for the reply.
  Status wait(std::uint64_t call);
  bool wants(std::uint64_t call) const;  // true if the caller waits for the reply
  // The part of a reply that lasts until the call ends.
  struct Kept {
    OpenWindows windows;           // may be empty
    std::uint64_t head_bytes = 0;  // of the first window, if it holds the head
    std::string subject;           // of the windows
    ReplyEnded ended;              // not called yet; it may be empty
  };
  // Keeps the answer to a call. Returns `kept` if nobody reads the answer, because the caller abandoned the call or the
  // session ended.
  std::optional<Kept> answered(std::uint64_t call, AnswerMessage answer, Kept kept);
  // A call that has ended.
  struct Ended {
    Kept kept;
    bool was_pending = false;  // wait() was called, and there was no answer
  };
  std::optional<Ended> end(std::uint64_t call);
  std::vector<Ended> end_all();

  // Answers a question about a call, and keeps the windows of the call open. If the queue of calls does not move, a
  // queued call counts as in work.
  CallBody about(const AskMessage& question, bool queue_moves);
  // The time at which the windows of a call close; nothing for a call that has ended.
  std::optional<Clock::time_point> open_until(std::uint64_t call) const;
  Clock::time_point used() const;

 private:
  struct Call {
    CallState state = CallState::queued;
    bool is_pending = false;
    AnswerMessage answer;  // kept because its message may be lost
    Kept kept;
    Clock::time_point open_until{};
  };
  Ended ended(Call call);  // with mutex_ held

  Channel channel_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Call> calls_;  // guarded by mutex_, as all that follows
  std::size_t pending_ = 0;
  bool over_ = false;
  Clock::time_point used_ = Clock::now();
};

}  // namespace weft::net
