#include "notifier.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <utility>

namespace weft {

Status Notifier::start(std::unique_ptr<KernelCache> cache) {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return Error{Errc::io, "no descriptor to wake the notifier by"};
  cache_ = std::move(cache);
  {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
    if (!tasks_.empty()) ::eventfd_write(wake_.get(), 1);
  }
  thread_ = std::thread([this] { run(); });
  return {};
}

void Notifier::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ::eventfd_write(wake_.get(), 1);
  }
  thread_.join();
}

void Notifier::ask(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (wake_.valid()) ::eventfd_write(wake_.get(), 1);
}

void Notifier::invalidate_entry(Ino dir, std::string name) {
  ask([dir, name = std::move(name)](KernelCache& cache) { cache.expire_name(dir, name); });
}

void Notifier::invalidate_attr(Ino ino) {
  ask([ino](KernelCache& cache) { cache.forget_attr(ino); });
}

void Notifier::do_tasks() {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const Task& task : tasks) task(*cache_);
}

void Notifier::run() {
  pollfd event{wake_.get(), POLLIN, 0};
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    do_tasks();
    ::poll(&event, 1, -1);
    eventfd_t times = 0;
    ::eventfd_read(wake_.get(), &times);
  }
}

}  // namespace weft
