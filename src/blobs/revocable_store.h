// A reference to a store that its owner can revoke: for a thread that may outlive the owner.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <type_traits>

#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Any thread.
class RevocableStore {
 public:
  explicit RevocableStore(Store& store) : store_(&store) {}

  // Returns work(store), or Errc::cancelled after revoke(). `work` must not hang, and may keep only objects that
  // outlive the store.
  template <class Work>
  auto use(const Work& work) const -> std::invoke_result_t<Work, Store&> {
    const std::shared_lock lock(mutex_);
    if (store_ == nullptr) return Error{Errc::cancelled, "the daemon ends"};
    return work(*store_);
  }
  // Waits until all calls of use() have returned.
  void revoke() {
    const std::lock_guard lock(mutex_);
    store_ = nullptr;
  }

 private:
  mutable std::shared_mutex mutex_;
  Store* store_;  // guarded by mutex_
};

}  // namespace weft
