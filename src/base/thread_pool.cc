#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <memory>

namespace weft {

unsigned usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1U, static_cast<unsigned>(CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(unsigned threads) {
  unsigned count = threads != 0 ? threads : usable_cpus();
  threads_.reserve(count);
  for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this] { run(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::submit(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void ThreadPool::run() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

void ThreadPool::parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  struct Shared {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable done;
    std::size_t helpers_left = 0;  // guarded by mutex
  };
  if (count == 0) return;
  auto shared = std::make_shared<Shared>();
  auto drain = [shared, count, &body] {
    for (std::size_t i = shared->next++; i < count; i = shared->next++) body(i);
  };
  std::size_t helpers = std::min<std::size_t>(size(), count - 1);
  shared->helpers_left = helpers;
  for (std::size_t i = 0; i < helpers; ++i) {
    submit([shared, drain] {
      drain();
      std::lock_guard lock(shared->mutex);
      if (--shared->helpers_left == 0) shared->done.notify_one();
    });
  }
  drain();
  std::unique_lock lock(shared->mutex);
  shared->done.wait(lock, [&] { return shared->helpers_left == 0; });
}

}  // namespace weft
