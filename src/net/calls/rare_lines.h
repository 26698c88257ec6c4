// Limits lines of the log that others can cause: one line a minute about each subject, and few subjects. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace weft::net {

class RareLines {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kPause{1};
  static constexpr std::size_t kSubjectsMax = 16;  // lines a minute

  // True if a line about this subject may be written now. The next one is due after kPause.
  bool due(const std::string& subject, Clock::time_point now = Clock::now()) {
    const std::lock_guard lock(mutex_);
    std::erase_if(quiet_until_, [now](const auto& one) { return one.second <= now; });
    return quiet_until_.size() < kSubjectsMax && quiet_until_.try_emplace(subject, now + kPause).second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> quiet_until_;  // guarded by mutex_
};

}  // namespace weft::net
