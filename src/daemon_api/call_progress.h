// Reports the progress of a request to its client.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "control/call.h"
#include "weft/progress.h"

namespace weft {

// Sends at most ten events per second, and none while the client is slow to receive. Any thread.
class CallProgress final : public Progress {
 public:
  explicit CallProgress(control::Call& call) : call_(call) {}
  void total(std::uint64_t bytes) override;
  void advance(std::uint64_t bytes) override;
  void phase(std::string_view what) override;
  bool cancelled() const override { return call_.cancelled() || (lasts_ && !lasts_()); }

  // `rate` names the setting whose rate holds the work back now. Set it before other threads use the progress; it must
  // not wait.
  void names_rate(std::function<std::string_view()> rate) { rate_ = std::move(rate); }

  // While this lives, the work counts as cancelled once `lasts` is false. Make it before other threads use the
  // progress.
  class While {
   public:
    While(CallProgress& progress, std::function<bool()> lasts) : progress_(progress) {
      progress_.lasts_ = std::move(lasts);
    }
    ~While() { progress_.lasts_ = {}; }
    While(const While&) = delete;
    While& operator=(const While&) = delete;

   private:
    CallProgress& progress_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  void tell();
  control::Call& call_;
  std::atomic<std::uint64_t> total_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<Clock::rep> next_ = 0;
  std::mutex mutex_;
  std::string phase_;                       // guarded by mutex_
  std::function<bool()> lasts_;             // empty: always
  std::function<std::string_view()> rate_;  // empty: none
};

}  // namespace weft
