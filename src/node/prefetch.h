// Reads ahead in containers that are open, each around its reader (prefetch_window.h): one thread looks how far readers
// are, and a few others wait for the disk. While nobody reads, the first wakes once a second at most; with nothing to
// watch it sleeps. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/sys.h"
#include "base/thread_pool.h"
#include "node/prefetch_window.h"

namespace weft {

// [offset, offset + length) of a file is what lies in `fd` from fd_offset on.
struct FilePiece {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  int fd = -1;
  std::uint64_t fd_offset = 0;
};

// What to read ahead in. Pieces are in order and touch, from pieces[0].offset to the file's end.
struct PrefetchSubject {
  std::vector<FilePiece> pieces;
  std::vector<std::uint64_t> borders;  // where tensors begin, ascending
  bool reads_seen = false;             // every read is told; else the page cache is watched
};

class Prefetcher {
  using Clock = std::chrono::steady_clock;

 public:
  // One open file that is read ahead in, until this is destroyed; then its descriptors are not used any more.
  class Watch {
   public:
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    // Somebody opened the file: with its beginning, unless it is being read already.
    void begin();
    void told(std::uint64_t offset, std::uint64_t length);  // somebody reads here

   private:
    friend class Prefetcher;
    struct State;
    Watch(Prefetcher& owner, std::shared_ptr<State> state) : owner_(owner), state_(std::move(state)) {}
    static bool rest(State& state, Clock::time_point now);
    Prefetcher& owner_;
    std::shared_ptr<State> state_;
  };

  Prefetcher() = default;
  ~Prefetcher();  // after every Watch
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Begins with begin() or told().
  std::unique_ptr<Watch> watch(PrefetchSubject subject);

 private:
  void run();
  void wake_at(Clock::time_point when);
  void start();                                                                                 // under mutex_
  Clock::time_point step(const std::shared_ptr<Watch::State>& watched, Clock::time_point now);  // when it is due again

  std::mutex mutex_;
  std::vector<std::shared_ptr<Watch::State>> watched_;     // guarded by mutex_
  Clock::time_point wakes_at_ = Clock::time_point::max();  // guarded by mutex_: when timer_ goes off at the latest
  Fd timer_;                                               // of the clock that steady_clock is
  bool ending_ = false;                                    // guarded by mutex_
  std::unique_ptr<ThreadPool> readers_;                    // made with the first watch, as the thread is
  std::thread thread_;
};

}  // namespace weft
