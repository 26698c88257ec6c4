// A progress that cancels the work after some polls (header only).
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "weft/progress.h"

namespace weft::testing {

// Any thread.
class StopAfter final : public Progress {
 public:
  explicit StopAfter(int polls) : left_(polls) {}
  void total(std::uint64_t) override {}
  void advance(std::uint64_t) override {}
  void phase(std::string_view) override {}
  bool cancelled() const override { return --left_ < 0; }

 private:
  mutable std::atomic<int> left_;
};

}  // namespace weft::testing
