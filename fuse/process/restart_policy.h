// When a lost server is followed by another, and when that is no use. Pure: the supervisor measures, this decides.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace weft {

// The end of one server.
struct Loss {
  bool killed = false;                 // by SIGKILL: somebody else's doing, or the kernel was out of memory
  bool ready = false;                  // it had come to answer requests
  std::uint64_t answered = 0;          // requests since it started
  std::vector<std::uint64_t> running;  // numbers of the requests that it left unanswered, in rising order
};

class RestartPolicy {
 public:
  static constexpr unsigned kFaultsMax = 5;  // in a row, of servers that got nowhere
  static constexpr unsigned kKillsMax = 100;

  // Counts a loss. A server got nowhere when it answered nothing, or when a request that was under way at the loss
  // before is under way again: it is what kills them. False: give up.
  bool go_on(const Loss& loss);
  // To wait before the next server starts: nothing after a loss by chance, longer with each one that got nowhere.
  std::chrono::milliseconds pause() const;

 private:
  unsigned faults_ = 0;
  unsigned kills_ = 0;
  std::vector<std::uint64_t> running_;
};

// Does a server stand still? It does when work waits and nothing at all was finished for `limit`.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;
  explicit StallWatch(std::chrono::seconds limit) : limit_(limit) {}  // 0: it never does

  bool stalled(Clock::time_point now, std::uint64_t finished, bool work_waits);
  void restart(Clock::time_point now) { since_ = now; }

 private:
  const std::chrono::seconds limit_;
  std::uint64_t finished_ = 0;
  Clock::time_point since_{};
};

}  // namespace weft
