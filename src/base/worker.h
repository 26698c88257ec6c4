// A thread that repeats a round of work, with a pause after each round.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/time_source.h"
#include "weft/result.h"

namespace weft {

// The pause after a failure: `first`, and twice as long after each further failure, up to `longest`.
class RetryPause {
 public:
  using Time = Deadline::duration;
  explicit constexpr RetryPause(Time each) : RetryPause(each, each) {}
  constexpr RetryPause(Time first, Time longest) : first_(first), longest_(longest), next_(first) {}
  Time failed();  // returns the pause after this failure
  void reset() { next_ = first_; }

 private:
  Time first_, longest_, next_;
};

// Any thread. The owner declares it after all members that the round uses.
class Worker {
 public:
  using Pause = Deadline::duration;
  static constexpr Pause kUntilWoken = Pause::max();
  static constexpr RetryPause kNoRetry{std::chrono::seconds(1)};  // for rounds that never fail
  // Returns the pause before the next round. Must not throw, and must not call end().
  using Round = std::function<Result<Pause>()>;

  // After a failed round the worker pauses as `retry` says, and logs "NAME: MESSAGE", unless the previous round failed
  // with the same message. `time` outlives the worker.
  explicit Worker(std::string name, RetryPause retry = kNoRetry, const TimeSource& time = steady_time())
      : name_(std::move(name)), retry_(retry), time_(time) {}
  ~Worker() { end(); }

  // Starts the thread with a first round. False, without effect, after an earlier start() or ask_to_end(). The latter
  // calls `interrupt`, if any, to end a wait within the round.
  bool start(Round round, std::function<void()> interrupt = {});
  // Ends the pause. During a round: the next round follows without a pause.
  void wake();
  // No further round starts. A running round sees ending().
  void ask_to_end();
  void end();  // ask_to_end(), and waits for the running round
  // As end(), but waits only so long. False: the round hangs, and the thread goes on without this. The round then has
  // to keep alive what it uses, the worker as well.
  bool end_within(std::chrono::milliseconds patience);
  bool ending() const;
  std::string problem() const;  // message of the last round; "" if it succeeded

 private:
  void run(const Round& round);
  Pause pause_after(const Result<Pause>& done);

  const std::string name_;
  RetryPause retry_;  // used only by the thread
  const TimeSource& time_;
  mutable Mutex mutex_;
  Condition wake_;
  bool woken_ WEFT_GUARDED_BY(mutex_) = false;
  bool ending_ WEFT_GUARDED_BY(mutex_) = false;
  bool ended_ WEFT_GUARDED_BY(mutex_) = false;  // the thread runs no more rounds
  std::string problem_ WEFT_GUARDED_BY(mutex_);
  std::function<void()> interrupt_ WEFT_GUARDED_BY(mutex_);
  std::thread thread_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
