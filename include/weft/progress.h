// Progress reports and cancellation of long work (base/progress.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "weft/result.h"

namespace weft {

// Called from any thread. Implementations are cheap and never block for long.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void total(std::uint64_t bytes) = 0;    // size of the work, once known; may grow
  virtual void advance(std::uint64_t bytes) = 0;  // this much more is done
  virtual void phase(std::string_view what) = 0;  // "hashing model.safetensors"
  virtual bool cancelled() const = 0;             // polled at least once every few MiB
};

// Errc::cancelled if the work is cancelled.
Status check_cancelled(const Progress& progress);

// Cancels or reports a wait for a lock of the store that another process holds. Each function may be empty. Called from
// any thread; must not block.
struct Patience {
  std::function<bool()> cancelled;
  std::function<void(std::string_view)> waiting;  // called once if the wait is long; names the holder if known
};

// Reports nothing. Polls `cancelled`; without it, the work is never cancelled.
class SilentProgress final : public Progress {
 public:
  explicit SilentProgress(std::function<bool()> cancelled = {}) : cancelled_(std::move(cancelled)) {}
  void total(std::uint64_t /*bytes*/) override {}
  void advance(std::uint64_t /*bytes*/) override {}
  void phase(std::string_view /*what*/) override {}
  bool cancelled() const override { return cancelled_ && cancelled_(); }

 private:
  const std::function<bool()> cancelled_;
};

// Returns a Progress that reports nothing and never cancels.
Progress& no_progress();

}  // namespace weft
