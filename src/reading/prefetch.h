// Reads ahead in containers that are open or were just closed, each around its reader (prefetch_window.h). One thread
// follows the readers, and other threads wait for the disk. While no reader moves, the first thread wakes at most once
// a second; without a watched file it sleeps. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "os/sys.h"
#include "reading/prefetch_subject.h"

namespace weft {

class PrefetchedFile;

class Prefetcher {
  using Clock = std::chrono::steady_clock;

 public:
  // Reads ahead in one open file until destroyed. The file's descriptors are not used afterwards. If reads are not
  // reported, a mapping may outlive the file's last close (loaders map and close), and its readers go on. Then the
  // prefetcher reads ahead of them through a descriptor of its own, while they move and for ten seconds more.
  class Watch {
   public:
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    // Call it after a reader has opened the file. Brings in the beginning, unless another reader moved in the file
    // lately.
    void begin();
    void told(std::uint64_t offset, std::uint64_t length);  // reports a read

   private:
    friend class Prefetcher;
    Watch(Prefetcher& owner, std::shared_ptr<PrefetchedFile> file) : owner_(owner), file_(std::move(file)) {}
    Prefetcher& owner_;
    std::shared_ptr<PrefetchedFile> file_;
  };

  ~Prefetcher();  // destroy every Watch first

  // Brings in nothing before begin() or told().
  std::unique_ptr<Watch> watch(PrefetchSubject subject);

 private:
  void run();
  void wake_at(Clock::time_point when);
  void start();  // under mutex_
  Clock::time_point step(const std::shared_ptr<PrefetchedFile>& watched,
                         Clock::time_point now);                             // returns when the next step is due
  std::shared_ptr<PrefetchedFile> rejoined(const PrefetchSubject& subject);  // under mutex_; nullptr: not in left_
  void drop_over();                                                          // removes ended files from left_
  std::shared_ptr<PrefetchedFile> take_oldest_left();                        // under mutex_; nullptr: left_ is not full

  std::mutex mutex_;                                       // locked before a file's own mutex
  std::vector<std::shared_ptr<PrefetchedFile>> watched_;   // each has a Watch; guarded by mutex_
  std::vector<std::shared_ptr<PrefetchedFile>> left_;      // closed files, without a Watch; guarded by mutex_
  Clock::time_point wakes_at_ = Clock::time_point::max();  // guarded by mutex_: the latest time at which timer_ fires
  Fd timer_;                                               // CLOCK_MONOTONIC, as steady_clock
  bool ending_ = false;                                    // guarded by mutex_
  std::unique_ptr<ThreadPool> readers_;                    // created with the first watch, as is thread_
  std::thread thread_;
};

}  // namespace weft
