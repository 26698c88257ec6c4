// Calls that may never return, such as calls on files of a mount whose server hangs. They run on threads that are left
// behind if they hang. A thread stuck in the kernel keeps its process from ending, so there are few threads: while all
// of them hang, calls fail at once.
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
  ~BoundedCalls();  // does not wait for calls past their deadline
  BoundedCalls(const BoundedCalls&) = delete;
  BoundedCalls& operator=(const BoundedCalls&) = delete;

  // Returns the result of `job`. Errc::timed_out at the deadline, and at once while every thread is past its deadline.
  // An abandoned job may still run, so it must own everything that it uses.
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
