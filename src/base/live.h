// A value that threads read while one of them may replace it, such as a configuration that SIGHUP reads again.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"

namespace weft {

// Any thread.
template <class T>
class Live {
 public:
  explicit Live(T value) : value_(std::make_shared<const T>(std::move(value))) {}
  // The value of now, which a reader keeps as long as it likes.
  std::shared_ptr<const T> get() const {
    const MutexLock lock(mutex_);
    return value_;
  }
  void set(T value) {
    auto made = std::make_shared<const T>(std::move(value));
    const MutexLock lock(mutex_);
    value_.swap(made);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> value_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
