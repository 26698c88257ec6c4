// Reads ahead in containers that are open or were just closed, each around its reader (prefetch_window.h). One thread
// looks how far readers are, and other threads wait for the disk. If nobody reads, the first thread wakes once a second
// at most; if there is nothing to watch, it sleeps. Any thread.
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
  // One open file that is read ahead in, until this is destroyed. Then its descriptors are not used any more. If reads
  // are not reported, a mapping may outlive the file's last close (loaders map and close), and its readers go on. The
  // prefetcher then precedes them by a descriptor of its own, as long as they move, and ten seconds longer.
  class Watch {
   public:
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    // A reader opened the file. Brings in its beginning, unless another reader moved in it lately.
    void begin();
    void told(std::uint64_t offset, std::uint64_t length);  // somebody reads here

   private:
    friend class Prefetcher;
    Watch(Prefetcher& owner, std::shared_ptr<PrefetchedFile> file) : owner_(owner), file_(std::move(file)) {}
    Prefetcher& owner_;
    std::shared_ptr<PrefetchedFile> file_;
  };

  Prefetcher() = default;
  ~Prefetcher();  // after every Watch
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Nothing is brought in before begin() or told().
  std::unique_ptr<Watch> watch(PrefetchSubject subject);

 private:
  void run();
  void wake_at(Clock::time_point when);
  void start();  // under mutex_
  Clock::time_point step(const std::shared_ptr<PrefetchedFile>& watched,
                         Clock::time_point now);                             // when it is due again
  std::shared_ptr<PrefetchedFile> rejoined(const PrefetchSubject& subject);  // under mutex_; nullptr: it was not left
  void drop_over();                                                          // of left_
  std::shared_ptr<PrefetchedFile> take_oldest_left();  // under mutex_; nullptr: they are not too many

  std::mutex mutex_;                                       // before a file's own
  std::vector<std::shared_ptr<PrefetchedFile>> watched_;   // each has a Watch; guarded by mutex_
  std::vector<std::shared_ptr<PrefetchedFile>> left_;      // none has a Watch any more; guarded by mutex_
  Clock::time_point wakes_at_ = Clock::time_point::max();  // guarded by mutex_: when timer_ goes off at the latest
  Fd timer_;                                               // of the clock that steady_clock is
  bool ending_ = false;                                    // guarded by mutex_
  std::unique_ptr<ThreadPool> readers_;                    // made with the first watch, as the thread is
  std::thread thread_;
};

}  // namespace weft
