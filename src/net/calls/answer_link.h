// The answering end of a session: the calls that came by it, and the windows that are open for them. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/calls/channel.h"
#include "weft/window_memory.h"

namespace weft::net {

// Windows that were opened for one answer, with the memory below them.
class OpenWindows {
 public:
  OpenWindows() = default;
  OpenWindows(OpenWindows&&) = default;
  OpenWindows& operator=(OpenWindows&&) = default;
  ~OpenWindows() = default;

  // A copy of the memory is opened where it is a file's and the provider takes none of these, as hardware may not.
  Status open(Transport& transport, std::unique_ptr<WindowMemory> memory);
  std::vector<RemoteWindow> remote() const;
  std::size_t count() const { return windows_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  // The reader may still be reading: nothing else comes to these addresses.
  void withdraw();

 private:
  std::vector<std::unique_ptr<WindowMemory>> memory_;
  std::vector<std::unique_ptr<Window>> windows_;  // closed before their memory goes
  std::uint64_t bytes_ = 0;
};

class AnswerLink {
 public:
  using Clock = std::chrono::steady_clock;
  AnswerLink(Transport& transport, PeerId peer, Session session) : channel_(transport, peer, std::move(session)) {}

  Channel& channel() { return channel_; }

  // A call has come. False: it came before, or there are too many of it.
  bool begin(std::uint64_t call);
  void work(std::uint64_t call);  // from now on it is being answered
  // Its windows are open. Gives them back when nobody wants them any more: it was given up, or the session is over.
  std::optional<OpenWindows> answered(std::uint64_t call, AnswerMessage answer, OpenWindows windows,
                                      std::string subject);
  // A call that is over.
  struct Ended {
    OpenWindows windows;  // none if it had none
    std::string subject;
  };
  std::optional<Ended> end(std::uint64_t call);
  std::vector<OpenWindows> end_all();

  // Answers a question about a call, and keeps the windows of the call open.
  CallBody about(const AskMessage& question);
  // The time at which the windows of a call close; nothing for a call that has ended.
  std::optional<Clock::time_point> open_until(std::uint64_t call) const;
  Clock::time_point used() const;

 private:
  struct Call {
    CallState state = CallState::queued;
    AnswerMessage answer;  // when it is answered: it may have been lost
    OpenWindows windows;
    std::string subject;  // of the windows
    Clock::time_point open_until{};
  };

  Channel channel_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Call> calls_;  // guarded by mutex_, as all that follows
  bool over_ = false;
  Clock::time_point used_ = Clock::now();
};

}  // namespace weft::net
