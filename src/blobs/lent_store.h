// A store as a thread has it that may be left behind when its owner ends.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <type_traits>

#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// Any thread.
class LentStore {
 public:
  explicit LentStore(Store& store) : store_(&store) {}

  // What `work` returns, given the store; Errc::cancelled once it was taken back. `work` keeps nothing of the store but
  // what outlives it, and calls nothing that may hang.
  template <class Work>
  auto use(const Work& work) const -> std::invoke_result_t<Work, Store&> {
    const std::shared_lock lock(mutex_);
    if (store_ == nullptr) return Error{Errc::cancelled, "the daemon ends"};
    return work(*store_);
  }
  // Waits for those that use it.
  void take_back() {
    const std::lock_guard lock(mutex_);
    store_ = nullptr;
  }

 private:
  mutable std::shared_mutex mutex_;
  Store* store_;  // guarded by mutex_
};

}  // namespace weft
