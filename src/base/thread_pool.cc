#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <system_error>
#include <utility>

namespace weft {

unsigned usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1U, static_cast<unsigned>(CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(unsigned threads) : threads_max_(threads != 0 ? threads : usable_cpus()) {
  threads_.reserve(threads_max_);
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::start_thread() {
  if (threads_.size() == threads_max_) return true;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    return !threads_.empty();
  }
  return true;
}

void ThreadPool::submit(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    if (waiting_ > jobs_.size() || start_thread()) jobs_.push_back(std::exchange(job, nullptr));
  }
  if (job) return job();  // no thread could be started
  wake_.notify_one();     // after the unlock, because the woken thread needs the mutex
}

void ThreadPool::run() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      ++waiting_;
      wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      --waiting_;
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
