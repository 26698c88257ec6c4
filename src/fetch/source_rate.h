// The rate of a source, measured by its large reads. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

class SourceRate {
 public:
  void begin() { ++running_; }
  // Ends a read that began; 0 bytes: it failed. No time: it says nothing about the source.
  void end(std::uint64_t bytes, std::chrono::duration<double> took) {
    const double at_once = running_--;
    if (bytes < kTells) return;
    others_ = 0;
    try_after_ = kTryAfter;
    if (took.count() <= 0) return;
    const double rate = static_cast<double>(bytes) * at_once / took.count();
    rate_ = rate_ == 0 ? rate : kNewest * rate + (1 - kNewest) * rate_;
  }
  // Another source was read instead.
  void passed_over() { ++others_; }

  double bytes_per_s() const { return rate_; }  // of all its reads together; 0: unknown
  // True if the source should be read once to measure its current rate.
  bool is_due() const { return others_ >= try_after_; }

 private:
  static constexpr std::uint64_t kTells = 256U << 10U;
  static constexpr double kNewest = 0.2;
  static constexpr std::uint64_t kTryFirst = 16;  // reads of other sources
  static constexpr std::uint64_t kTryAfter = 128;
  unsigned running_ = 0;
  double rate_ = 0;
  std::uint64_t others_ = 0;
  std::uint64_t try_after_ = kTryFirst;
};

}  // namespace weft
