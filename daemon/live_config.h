// The current configuration, which SIGHUP replaces. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "daemon/config.h"

namespace weft {

class LiveConfig {
 public:
  explicit LiveConfig(Config config) : config_(std::make_shared<const Config>(std::move(config))) {}
  std::shared_ptr<const Config> get() const {
    const std::lock_guard lock(mutex_);
    return config_;
  }
  void set(Config config) {
    auto made = std::make_shared<const Config>(std::move(config));
    const std::lock_guard lock(mutex_);
    config_.swap(made);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Config> config_;  // guarded by mutex_
};

}  // namespace weft
