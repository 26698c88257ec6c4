#include "net/calls/peer_record.h"

namespace weft::net {
namespace {

constexpr double kNewest = 0.3;                        // weight of the newest sample in a moving average
constexpr std::uint64_t kRateBytesMin = 64ULL << 10U;  // smaller reads measure latency, not the rate

void average(double& value, double newest) {
  value = value == 0 ? newest : (1 - kNewest) * value + kNewest * newest;
}

}  // namespace

void PeerRecord::answered(std::chrono::duration<double> after) {
  const std::lock_guard lock(mutex_);
  ++figures_.calls;
  ++figures_.answers;
  average(figures_.answer_ms, after.count() * 1e3);
}

void PeerRecord::failed() {
  const std::lock_guard lock(mutex_);
  ++figures_.calls;
  ++figures_.failures;
}

void PeerRecord::read(std::uint64_t bytes, std::chrono::duration<double> in) {
  const std::lock_guard lock(mutex_);
  figures_.read_bytes += bytes;
  if (bytes >= kRateBytesMin && in.count() > 0)
    average(figures_.read_bytes_per_second, static_cast<double>(bytes) / in.count());
}

PeerFigures PeerRecord::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

}  // namespace weft::net
