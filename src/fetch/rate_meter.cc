#include "fetch/rate_meter.h"

namespace weft {
namespace {

constexpr auto kStretch = std::chrono::milliseconds(50);
constexpr double kWeight = 0.5;  // of the newest stretch in the moving average

}  // namespace

void RateMeter::arrived(std::uint64_t bytes, Clock::time_point begun, Clock::time_point now) {
  if (begun > last_) {  // no read was in flight after the last arrival
    begin_ = begun;
    bytes_ = 0;
  }
  bytes_ += bytes;
  last_ = now;
  const std::chrono::duration<double> took = now - begin_;
  if (took < kStretch) return;
  const double rate = static_cast<double>(bytes_) / took.count();
  rate_ = rate_ == 0 ? rate : kWeight * rate + (1 - kWeight) * rate_;
  begin_ = now;
  bytes_ = 0;
}

}  // namespace weft
