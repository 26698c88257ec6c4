#include "base/worker.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace weft {

RetryPause::Time RetryPause::failed() {
  return std::exchange(next_, std::min(2 * next_, longest_));
}

bool Worker::start(Round round, std::function<void()> interrupt) {
  const MutexLock lock(mutex_);
  if (ending_ || thread_.joinable()) return false;
  interrupt_ = std::move(interrupt);
  thread_ = std::thread([this, round = std::move(round)] { run(round); });
  return true;
}

void Worker::wake() {
  const MutexLock lock(mutex_);
  woken_ = true;
  wake_.notify_all();
}

void Worker::ask_to_end() {
  const MutexLock lock(mutex_);
  ending_ = true;
  wake_.notify_all();
  if (interrupt_) interrupt_();
}

void Worker::end() {
  ask_to_end();
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

bool Worker::end_within(std::chrono::milliseconds patience) {
  ask_to_end();
  std::thread thread;
  {
    UniqueLock lock(mutex_);
    if (!thread_.joinable()) return ended_;
    const bool ended = wake_.wait_for(lock, patience, [this]() WEFT_REQUIRES(mutex_) { return ended_; });
    if (!ended) {
      thread_.detach();
      return false;
    }
    thread = std::move(thread_);
  }
  thread.join();
  return true;
}

bool Worker::ending() const {
  const MutexLock lock(mutex_);
  return ending_;
}

std::string Worker::problem() const {
  const MutexLock lock(mutex_);
  return problem_;
}

Worker::Pause Worker::pause_after(const Result<Pause>& done) {
  const std::string problem = done.ok() ? "" : done.error().message;
  const MutexLock lock(mutex_);
  if (!done.ok() && !ending_ && problem != problem_) log_warning("{}: {}", name_, problem);
  problem_ = problem;
  if (!done.ok()) return retry_.failed();
  retry_.reset();
  return *done;
}

void Worker::run(const Round& round) {
  for (;;) {
    const Pause pause = pause_after(round());
    UniqueLock lock(mutex_);
    const Deadline until = pause == kUntilWoken ? Deadline::max() : time_.now() + pause;
    while (!ending_ && !woken_ && time_.now() < until) time_.wait(wake_, lock, until);
    woken_ = false;
    if (!ending_) continue;
    ended_ = true;
    return wake_.notify_all();
  }
}

}  // namespace weft
