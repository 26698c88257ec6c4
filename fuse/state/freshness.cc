#include "fuse/state/freshness.h"

#include <chrono>
#include <thread>

namespace weft {

Freshness::Pass::~Pass() {
  if (out_ != nullptr) out_->fetch_sub(1);
}

Freshness::Pass Freshness::pass(Time looked) {
  if (looked == 0) return {};
  std::atomic<std::uint64_t>& out = out_[looked % 2];
  out.fetch_add(1);
  if (time_.load() == looked) return Pass(&out);
  out.fetch_sub(1);
  return {};
}

// Passes of the time before were waited for already, so a parity is one time's alone.
void Freshness::change(Time to) {
  const std::atomic<std::uint64_t>& out = out_[last_ % 2];
  time_.store(to);
  if (to != 0) last_ = to;
  while (out.load() != 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace weft
