// A bounded set of threads and a queue of jobs. Threads start when there are jobs for them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

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
  bool start_thread();  // under mutex_; false: the pool has none
  const unsigned threads_max_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;  // guarded by mutex_
  bool ending_ = false;                     // guarded by mutex_
  std::size_t waiting_ = 0;                 // guarded by mutex_
  std::vector<std::thread> threads_;        // guarded by mutex_ until the destructor
};

unsigned usable_cpus();

}  // namespace weft
