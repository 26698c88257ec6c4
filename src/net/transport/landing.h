// Landings with a count of the reads that may still write to them.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "weft/cluster/transport.h"

namespace weft::net {

// The base of the landings of every transport. Any thread.
class CountedLanding : public Landing {
 public:
  CountedLanding(std::span<std::byte> memory, std::shared_ptr<const void> owner)
      : memory_(memory), owner_(std::move(owner)) {}
  std::span<std::byte> bytes() const override { return memory_; }
  bool idle() const override { return uses_.load(std::memory_order_acquire) == 0; }

 private:
  friend class LandingUse;
  std::span<std::byte> memory_;
  std::shared_ptr<const void> owner_;
  std::atomic<int> uses_{0};
};

// A counted use of a landing. A read holds a use from before it is posted until its end.
class LandingUse {
 public:
  LandingUse() = default;
  explicit LandingUse(std::shared_ptr<CountedLanding> landing) : landing_(std::move(landing)) { ++landing_->uses_; }
  LandingUse(LandingUse&&) noexcept = default;
  LandingUse& operator=(LandingUse&& other) noexcept {
    std::swap(landing_, other.landing_);
    return *this;
  }
  ~LandingUse() {
    if (landing_) landing_->uses_.fetch_sub(1, std::memory_order_release);
  }

  CountedLanding* operator->() const { return landing_.get(); }
  CountedLanding& operator*() const { return *landing_; }

 private:
  std::shared_ptr<CountedLanding> landing_;
};

}  // namespace weft::net
