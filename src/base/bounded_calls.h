// Calls that may never return, such as those on files of a mount whose server hangs, on threads that are left behind
// then. A thread that the kernel does not let go keeps its process from ending, so there are few of them: while all of
// them hang, calls fail at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class BoundedCalls {
 public:
  // `what` starts messages.
  BoundedCalls(std::string what, unsigned threads_max);
  ~BoundedCalls();  // waits for no call that is past its deadline
  BoundedCalls(const BoundedCalls&) = delete;
  BoundedCalls& operator=(const BoundedCalls&) = delete;

  // What `job` returns. Errc::timed_out at the deadline, and at once while every thread is past one. A job that nobody
  // waits for any more may still run: what it uses is its own.
  template <class T>
  Result<T> call(std::function<Result<T>()> job, Deadline deadline) {
    auto outcome = std::make_shared<std::optional<Result<T>>>();
    Status ran = run([outcome, job = std::move(job)] { outcome->emplace(job()); }, deadline);
    if (!ran.ok()) return std::move(ran).error();
    return std::move(**outcome);
  }

 private:
  struct State;
  Status run(std::function<void()> job, Deadline deadline);
  std::shared_ptr<State> state_;
};

}  // namespace weft
