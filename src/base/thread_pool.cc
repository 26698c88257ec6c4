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
    const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    if (waiting_ > jobs_.size() || start_thread()) jobs_.push_back(std::exchange(job, nullptr));
  }
  if (job) return job();  // no thread could be started
  wake_.notify_one();     // after the unlock, because the woken thread needs the mutex
}

void ThreadPool::run() {
  for (;;) {
    std::function<void()> job;
    {
      UniqueLock lock(mutex_);
      ++waiting_;
      wake_.wait(lock, [this]() WEFT_REQUIRES(mutex_) { return ending_ || !jobs_.empty(); });
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
    explicit Shared(std::size_t helpers) : helpers_left(helpers) {}
    std::atomic<std::size_t> next{0};
    Mutex mutex;
    Condition done;
    std::size_t helpers_left WEFT_GUARDED_BY(mutex);
  };
  if (count == 0) return;
  const std::size_t helpers = std::min<std::size_t>(size(), count - 1);
  auto shared = std::make_shared<Shared>(helpers);
  auto drain = [shared, count, &body] {
    for (std::size_t i = shared->next++; i < count; i = shared->next++) body(i);
  };
  for (std::size_t i = 0; i < helpers; ++i) {
    submit([shared, drain] {
      drain();
      const MutexLock lock(shared->mutex);
      if (--shared->helpers_left == 0) shared->done.notify_one();
    });
  }
  drain();
  UniqueLock lock(shared->mutex);
  shared->done.wait(lock, [&]() WEFT_REQUIRES(shared->mutex) { return shared->helpers_left == 0; });
}

}  // namespace weft
