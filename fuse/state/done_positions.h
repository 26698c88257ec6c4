// The tree position (weft/vfs.h) at which some work was last done for each directory. Only a new position requires the
// work again. Any thread.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"
#include "weft/vfs.h"

namespace weft {

class DonePositions {
 public:
  bool is_done(Ino dir, std::uint64_t position) const {
    const MutexLock lock(mutex_);
    const auto found = positions_.find(dir);
    return found != positions_.end() && found->second == position;
  }
  void done(Ino dir, std::uint64_t position) {
    const MutexLock lock(mutex_);
    positions_[dir] = position;
  }

 private:
  mutable Mutex mutex_;
  std::unordered_map<Ino, std::uint64_t> positions_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
