// Decides whether a lost server is followed by another one. Pure: the supervisor measures, this decides.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace weft {

// The end of one server.
struct Loss {
  bool killed = false;                 // by SIGKILL: from outside, or by the kernel's out-of-memory killer
  bool ready = false;                  // it had begun to answer requests
  std::uint64_t answered = 0;          // requests since it started
  std::vector<std::uint64_t> running;  // numbers of its unanswered requests, in ascending order
};

class RestartPolicy {
 public:
  static constexpr unsigned kFaultsMax = 5;  // consecutive servers without progress
  static constexpr unsigned kKillsMax = 100;

  // Counts a loss. A server made no progress if it never answered a request, or if a request that was running at the
  // previous loss is running again: that request kills servers. False: give up.
  bool go_on(const Loss& loss);
  // How long to wait before the next server starts: 0 after a chance loss, longer with each server without progress.
  std::chrono::milliseconds pause() const;

 private:
  unsigned faults_ = 0;
  unsigned kills_ = 0;
  std::vector<std::uint64_t> running_;
};

// Detects a stalled server: work waits, and no request was finished for `limit`.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;
  explicit StallWatch(std::chrono::seconds limit) : limit_(limit) {}  // 0: no server ever counts as stalled

  bool stalled(Clock::time_point now, std::uint64_t finished, bool work_waits);
  void restart(Clock::time_point now) { since_ = now; }

 private:
  const std::chrono::seconds limit_;
  std::uint64_t finished_ = 0;
  Clock::time_point since_{};
};

}  // namespace weft
