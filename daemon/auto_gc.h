// gc that weftd runs by itself. A version that a user has removed stays for a while, unless space is short: until then
// it is held as if somebody had it open. A version that a publish with `keep` has removed is freed at once. gc also
// runs once in each such while, for versions that other nodes have removed. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "weft/store.h"

namespace weft {

struct HeldVersions {
  std::uint64_t versions = 0;
  std::chrono::seconds next_release{0};  // until the first of them goes
};

class AutoGc {
 public:
  struct Actions {
    std::function<std::chrono::seconds()> delay;  // as it is configured now
    std::function<bool()> space_is_short;
    std::function<Result<VersionHold>(VersionId)> hold;
    std::function<Status(const std::function<bool()>& cancelled)> collect;  // an error: it is tried again
  };
  explicit AutoGc(Actions actions) : actions_(std::move(actions)) {}
  ~AutoGc() { stop(); }
  AutoGc(const AutoGc&) = delete;
  AutoGc& operator=(const AutoGc&) = delete;

  void start();
  void stop();  // a gc that runs is given up
  // The version is removed, and stays for a while.
  void removed(VersionId version, VersionHold hold);
  // Versions are removed, and go at once.
  void collect_soon();
  HeldVersions held();
  // All that is held goes with the next gc.
  void release();
  // Holds nothing while `look` runs, which tells what release() and a gc would free.
  void look_without(const std::function<void()>& look);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Held {
    Time until;
    VersionId version = 0;
    VersionHold hold;
  };
  std::deque<Held> take();
  void run();
  bool due(Time now);
  Time wake_at(Time now) const;

  const Actions actions_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Held> held_;  // guarded by mutex_, as those below; the oldest first
  Time next_{};
  bool soon_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace weft
