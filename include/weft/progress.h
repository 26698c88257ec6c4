// How long work reports itself, and how it learns that the user wants it to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace weft {

// Called from any thread. Implementations are cheap and never block for long.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void total(std::uint64_t bytes) = 0;    // what is to be done, once known; may grow
  virtual void advance(std::uint64_t bytes) = 0;  // so much more is done
  virtual void phase(std::string_view what) = 0;  // "hashing model.safetensors"
  virtual bool cancelled() const = 0;             // polled at least once every few MiB
};

// How a wait for what another process holds, a lock of the store, ends before its time, and is told of. Each may be
// empty. Called from any thread; they do not block.
struct Patience {
  std::function<bool()> cancelled;
  std::function<void(std::string_view)> waiting;  // once, when it takes longer; names the holder where it is known
};

// Reports nowhere. Asks whether to stop; without a question it never does.
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

// One that never stops.
Progress& no_progress();

}  // namespace weft
