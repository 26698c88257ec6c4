// A progress bar on a terminal, with phase, bytes, rate and time left. Redrawn at most ten times a second.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

#include "weft/progress.h"

namespace weft {

struct ProgressState {
  std::string phase;
  std::uint64_t done = 0;   // bytes
  std::uint64_t total = 0;  // bytes; 0: unknown
  double seconds = 0;       // since the first byte
};

// Returns one line of less than `columns` columns.
std::string progress_line(const ProgressState& state, unsigned columns);

class ProgressBar final : public Progress {
 public:
  // Draws nothing if `out` is null. A nonzero `interrupt` makes cancelled() true.
  ProgressBar(std::ostream* out, std::function<unsigned()> columns, const std::atomic<int>& interrupt)
      : out_(out), columns_(std::move(columns)), interrupt_(interrupt) {}
  ~ProgressBar() override;  // clears the line

  void total(std::uint64_t bytes) override;
  void advance(std::uint64_t bytes) override;
  void phase(std::string_view what) override;
  bool cancelled() const override { return interrupt_.load(std::memory_order_relaxed) != 0; }

 private:
  using Clock = std::chrono::steady_clock;
  bool due();
  void draw();

  std::ostream* out_;
  std::function<unsigned()> columns_;
  const std::atomic<int>& interrupt_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::uint64_t> total_ = 0;
  std::atomic<Clock::rep> next_draw_ = 0;
  std::mutex mutex_;
  std::string phase_;        // guarded by mutex_
  Clock::time_point start_;  // time of the last draw before the first byte; guarded by mutex_
  bool drawn_ = false;       // guarded by mutex_
};

}  // namespace weft
