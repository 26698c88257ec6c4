// To whom this node gives bytes now. Few at a time: what many read at once comes to all of them late, and nobody has
// any of it to give on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace weft {

// Any thread.
class GivingNow {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kAtOnceMax =
      4;  // gifts, while who can wait asks: some of their time they are on the way
  static constexpr std::size_t kBusy = 2;
  static constexpr std::size_t kWaitingMax = 4;  // calls; each holds a thread
  // So long a call waits, and so long a gift counts, whether its taker says that it is over or not.
  static constexpr std::chrono::milliseconds kWaits{300};
  static constexpr std::chrono::milliseconds kCounts{1'000};

  // A gift to this node, that goes on for as long as what is returned, which may outlive this. While others have enough
  // of them, who can wait does so, in turn. Null when too many wait.
  std::shared_ptr<const void> begin(std::string_view node, bool waits);
  // What it gives now takes all its time.
  bool is_busy() const;
  std::size_t waiting() const;

 private:
  struct Gift {
    std::string node;
    Clock::time_point begun;
  };
  struct Gifts {
    std::mutex mutex;
    std::condition_variable ended;
    std::list<Gift> now;                            // guarded by mutex
    std::list<std::thread::id> waiting;             // guarded by mutex; in turn
    bool is_full_for(std::string_view node) const;  // with the mutex held
  };
  struct Ticket;

  const std::shared_ptr<Gifts> gifts_ = std::make_shared<Gifts>();
};

}  // namespace weft
