// A bounded set of threads and a queue of jobs. Threads start when there are jobs for them.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace weft {

class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads);  // 0: one for each CPU that this process may use
  ~ThreadPool();                          // runs the queued jobs first

  void submit(std::function<void()> job);  // jobs must not throw
  unsigned size() const { return threads_max_; }
  // Runs body(0) … body(count − 1) on the pool and this thread; returns when all are done. Do not call it within a job.
  void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  void run();
  bool start_thread() WEFT_REQUIRES(mutex_);  // false: the pool has none
  const unsigned threads_max_;
  Mutex mutex_;
  Condition wake_;
  std::deque<std::function<void()>> jobs_ WEFT_GUARDED_BY(mutex_);
  bool ending_ WEFT_GUARDED_BY(mutex_) = false;
  std::size_t waiting_ WEFT_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ WEFT_GUARDED_BY(mutex_);  // no lock in the destructor
};

unsigned usable_cpus();

}  // namespace weft
