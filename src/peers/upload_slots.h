// Upload slots. With many parallel uploads every peer finishes late, and none has a chunk to pass on, so there are few
// slots.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "weft/bytes/traffic.h"

namespace weft {

// Any thread.
class UploadSlots {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kAtOnceMax = 4;   // slots; an upload uses the link only for a part of its time
  static constexpr std::size_t kWaitingMax = 4;  // waiting calls; each holds a thread
  // The longest wait of a call for a slot, and the longest time that an upload counts, also if its peer does not report
  // the end.
  static constexpr std::chrono::milliseconds kWaits{300};
  static constexpr std::chrono::milliseconds kCounts{1'000};

  // Begins an upload to `node`, which ends when the returned pointer is dropped; the pointer may outlive this. If
  // `waits`, the call first waits in turn, up to kWaits, while the slots are full: calls of a lower class of traffic
  // before others, and each class in the order of arrival. Null if too many calls wait.
  std::shared_ptr<const void> begin(std::string_view node, Traffic traffic, bool waits);
  std::size_t waiting() const;

 private:
  struct Upload {
    std::string node;
    Clock::time_point begun;
  };
  struct Uploads {
    Mutex mutex;
    Condition ended;
    std::list<Upload> now WEFT_GUARDED_BY(mutex);
    std::list<Traffic> waiting WEFT_GUARDED_BY(mutex);  // calls, in their order
    bool is_full_for(std::string_view node) const WEFT_REQUIRES(mutex);
  };
  struct Ticket;

  const std::shared_ptr<Uploads> uploads_ = std::make_shared<Uploads>();
};

}  // namespace weft
