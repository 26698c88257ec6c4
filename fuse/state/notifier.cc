#include "fuse/state/notifier.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

constexpr std::uint64_t kDroppedAtOnce = 32U << 20U;  // bytes of pages per task; takes a few milliseconds

}  // namespace

void Notifier::start(KernelCache& cache) {
  thread_ = std::thread([this, &cache] { run(cache); });
}

void Notifier::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void Notifier::ask(Task task) {
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  asked_.notify_one();
}

void Notifier::invalidate_entry(Ino dir, std::string name) {
  ask([dir, name = std::move(name)](KernelCache& cache) { cache.expire_name(dir, name); });
}

void Notifier::drop_pages(Ino ino, std::uint64_t size) {
  drop_pages_from(0, ino, size);
}

void Notifier::drop_pages_from(std::uint64_t offset, Ino ino, std::uint64_t size) {
  if (offset >= size) return;
  ask([this, offset, ino, size](KernelCache& cache) {
    cache.forget_pages(ino, offset, std::min(kDroppedAtOnce, size - offset));
    drop_pages_from(offset + kDroppedAtOnce, ino, size);
  });
}

void Notifier::run(KernelCache& cache) {
  UniqueLock lock(mutex_);
  while (!stopping_) {
    asked_.wait(lock, [this]() WEFT_REQUIRES(mutex_) { return stopping_ || !tasks_.empty(); });
    const std::vector<Task> tasks = std::exchange(tasks_, {});
    lock.unlock();
    for (const Task& task : tasks) task(cache);
    lock.lock();
  }
}

}  // namespace weft
