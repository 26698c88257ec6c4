// The thread that invalidates names and pages in the kernel when a file gets a better way of reading. kernel_cache.h
// says why it is a separate thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "fuse/state/kernel_cache.h"
#include "weft/programs/vfs.h"

namespace weft {

// Any thread.
class Notifier {
 public:
  ~Notifier() { stop(); }

  void start(KernelCache& cache);  // `cache` outlives the thread
  // Joins the thread. After the server's last reply the thread may hang until the connection ends, so unmount first.
  void stop();

  // The invalidation happens soon after. These return at once, and serving threads may call them. Requests made before
  // start() are carried out after it.
  void invalidate_entry(Ino dir, std::string name);  // the name is looked up again; it may lead to another node
  // Drops all pages of a file of `size` bytes, in parts, so that no other task waits long.
  void drop_pages(Ino ino, std::uint64_t size);

 private:
  using Task = std::function<void(KernelCache&)>;

  void ask(Task task);
  void drop_pages_from(std::uint64_t offset, Ino ino, std::uint64_t size);
  void run(KernelCache& cache);

  std::thread thread_;
  Mutex mutex_;
  Condition asked_;
  std::vector<Task> tasks_ WEFT_GUARDED_BY(mutex_);
  bool stopping_ WEFT_GUARDED_BY(mutex_) = false;
};

}  // namespace weft
