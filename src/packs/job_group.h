// A group of pool jobs with one wait for all of them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/thread_pool.h"
#include "weft/result.h"

namespace weft {

// run() and wait() belong to one thread outside of the pool.
class JobGroup {
 public:
  explicit JobGroup(ThreadPool& pool) : pool_(pool) {}
  ~JobGroup() { static_cast<void>(wait()); }
  JobGroup(const JobGroup&) = delete;
  JobGroup& operator=(const JobGroup&) = delete;

  void run(std::function<Status()> job) {
    begin();
    pool_.submit([this, job = std::move(job)] { end(job()); });
  }
  // Count work that another job does: wait() also waits until each begin() has its end(). Any thread calls end().
  void begin() {
    std::lock_guard lock(mutex_);
    ++left_;
  }
  void end(Status status) {
    std::lock_guard lock(mutex_);
    if (!status.ok() && !failure_) failure_ = std::move(status).error();
    if (--left_ == 0) done_.notify_all();
  }
  bool idle() {
    std::lock_guard lock(mutex_);
    return left_ == 0;
  }
  // Waits for all jobs. Returns the first failure since the last wait.
  Status wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return left_ == 0; });
    if (!failure_) return {};
    return *std::exchange(failure_, std::nullopt);
  }

 private:
  ThreadPool& pool_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t left_ = 0;          // guarded by mutex_
  std::optional<Error> failure_;  // guarded by mutex_
};

}  // namespace weft
