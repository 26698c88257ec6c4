// The tree position (weft/vfs.h) at which some work was last done for each directory. Only a new position requires the
// work again. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "weft/vfs.h"

namespace weft {

class DonePositions {
 public:
  bool is_done(Ino dir, std::uint64_t position) const {
    const std::lock_guard lock(mutex_);
    const auto found = positions_.find(dir);
    return found != positions_.end() && found->second == position;
  }
  void done(Ino dir, std::uint64_t position) {
    const std::lock_guard lock(mutex_);
    positions_[dir] = position;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Ino, std::uint64_t> positions_;  // guarded by mutex_
};

}  // namespace weft
