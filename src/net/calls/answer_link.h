// The answering end of a session: the calls that came by it, and the windows that are open for them. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
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
  // Its windows are open. Gives them back when nobody wants them any more: it was given up, or the session is over.
  std::optional<OpenWindows> answered(std::uint64_t call, AnswerMessage answer, OpenWindows windows);
  // It is over: its windows, if it had any.
  std::optional<OpenWindows> end(std::uint64_t call);
  std::vector<OpenWindows> end_all();

  // What to say when the caller asks about a call.
  CallBody about(std::uint64_t call) const;
  Clock::time_point used() const;

 private:
  struct Call {
    AnswerMessage answer;  // when it is answered: it may have been lost
    OpenWindows windows;
    bool is_answered = false;
  };

  Channel channel_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Call> calls_;  // guarded by mutex_, as all that follows
  bool over_ = false;
  Clock::time_point used_ = Clock::now();
};

}  // namespace weft::net
