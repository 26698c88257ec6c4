// The thread that makes the kernel forget what is no longer so (kernel_cache.h says why it is a thread of its own). It
// waits for commits by any process, and tells the kernel what each changed, so that everything else can be kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fuse/state/freshness.h"
#include "fuse/state/kernel_cache.h"
#include "os/bell.h"
#include "weft/result.h"
#include "weft/vfs.h"

namespace weft {

// Any thread.
class Notifier {
 public:
  Notifier(Vfs& vfs, Freshness& freshness) : vfs_(vfs), freshness_(freshness) {}
  ~Notifier() { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // `told`: 1 + the position that the kernel was told all commits up to, kept there for a server that takes over; 0
  // when the kernel knows nothing yet. It outlives this.
  Status start(std::unique_ptr<KernelCache> cache, std::uint64_t& told);
  // Waits for the thread. Once nobody serves any more it may hang until the connection is over: unmount first.
  void stop();

  // The kernel forgets soon after; these return at once, and may be called from threads that serve. What is asked for
  // before start() is done after it.
  void invalidate_entry(Ino dir, std::string name);  // the name is looked up anew; it may lead elsewhere
  void invalidate_attr(Ino ino);                     // pages stay
  // Of a file of that size; in parts, so that nothing else waits for long.
  void drop_pages(Ino ino, std::uint64_t size);

  // Why nothing that may change is kept by the kernel; empty when all is well.
  std::string problem() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Task = std::function<void(KernelCache&)>;

  void ask(Task task);
  void drop_pages_from(std::uint64_t offset, Ino ino, std::uint64_t size);
  void run();
  void wait();
  bool stopping();
  void do_tasks();
  Status follow();
  Status tell_commits(std::uint64_t from, std::uint64_t to);
  Status catch_up(std::uint64_t now);
  Status repeat();
  void start_over();
  void note(const Status& followed);

  Vfs& vfs_;
  Freshness& freshness_;
  std::unique_ptr<KernelCache> cache_;
  std::unique_ptr<CommitWatch> watch_;
  std::thread thread_;
  const Bell wake_;

  // Of the thread.
  struct Repeat {
    Clock::time_point when;
    std::uint64_t to;
  };
  std::uint64_t* told_ = nullptr;          // twice; 1 + the position
  std::optional<std::uint64_t> position_;  // told once up to here; nothing: the kernel keeps nothing that changes
  std::optional<Repeat> repeat_;
  bool following_ = false;

  mutable std::mutex mutex_;
  std::vector<Task> tasks_;  // guarded by mutex_
  bool stopping_ = false;    // guarded by mutex_
  std::string problem_;      // guarded by mutex_
};

}  // namespace weft
