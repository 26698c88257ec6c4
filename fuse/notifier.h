// The thread that makes the kernel forget what is no longer so (kernel_cache.h says why it is a thread of its own).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/sys.h"
#include "kernel_cache.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// Any thread.
class Notifier {
 public:
  Notifier() = default;
  ~Notifier() { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  Status start(std::unique_ptr<KernelCache> cache);
  // Waits for the thread. Once nobody serves any more it may hang until the connection is over: unmount first.
  void stop();

  // The kernel forgets soon after; these return at once, and may be called from threads that serve. What is asked for
  // before start() is done after it.
  void invalidate_entry(Ino dir, std::string name);  // the name is looked up anew; it may lead elsewhere
  void invalidate_attr(Ino ino);                     // pages stay

 private:
  using Task = std::function<void(KernelCache&)>;
  void ask(Task task);
  void run();
  void do_tasks();

  std::unique_ptr<KernelCache> cache_;
  Fd wake_;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<Task> tasks_;  // guarded by mutex_
  bool stopping_ = false;    // guarded by mutex_
};

}  // namespace weft
