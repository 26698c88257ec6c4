#include "fuse/process/restart_policy.h"

#include <algorithm>
#include <iterator>

namespace weft {
namespace {

constexpr std::chrono::milliseconds kPauseStep{50};

bool share_one(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  std::vector<std::uint64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return !both.empty();
}

}  // namespace

bool RestartPolicy::go_on(const Loss& loss) {
  const bool nowhere = !loss.ready || loss.answered == 0 || share_one(running_, loss.running);
  running_ = loss.running;
  if (!nowhere) faults_ = kills_ = 0;
  if (nowhere) ++(loss.killed ? kills_ : faults_);
  return faults_ < kFaultsMax && kills_ < kKillsMax;
}

std::chrono::milliseconds RestartPolicy::pause() const {
  return kPauseStep * (faults_ <= 1 ? 0 : 1U << (faults_ - 2));
}

bool StallWatch::stalled(Clock::time_point now, std::uint64_t finished, bool work_waits) {
  if (!work_waits || finished != finished_) since_ = now;
  finished_ = finished;
  return limit_.count() != 0 && now - since_ >= limit_;
}

}  // namespace weft
