// The thread that makes the kernel forget names and pages of files that can be read in a better way now (kernel_cache.h
// says why it is a thread of its own).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fuse/state/kernel_cache.h"
#include "weft/vfs.h"

namespace weft {

// Any thread.
class Notifier {
 public:
  Notifier() = default;
  ~Notifier() { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void start(std::unique_ptr<KernelCache> cache);
  // Waits for the thread. Once no server answers any more it may hang until the connection is over: unmount first.
  void stop();

  // The kernel forgets soon after. These return at once and may be called from threads that serve. A request before
  // start() is done after it.
  void invalidate_entry(Ino dir, std::string name);  // the name is looked up anew; it may lead elsewhere
  // All pages of a file of that size; in parts, so that no other request waits for long.
  void drop_pages(Ino ino, std::uint64_t size);

 private:
  using Task = std::function<void(KernelCache&)>;

  void ask(Task task);
  void drop_pages_from(std::uint64_t offset, Ino ino, std::uint64_t size);
  void run(KernelCache& cache);

  std::unique_ptr<KernelCache> cache_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::vector<Task> tasks_;  // guarded by mutex_
  bool stopping_ = false;    // guarded by mutex_
};

}  // namespace weft
