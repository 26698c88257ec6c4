#include "pull/pull_follower.h"

#include <chrono>
#include <utility>

namespace weft {
namespace {

constexpr auto kFollowerPause = std::chrono::seconds(1);  // between two tries to open the area

}  // namespace

Result<PullArea*> PullFollower::area(const Patience& patience) {
  if (!area_) {
    WEFT_TRY(area_, PullArea::open(pulls_, key_, patience));
  }
  return &*area_;
}

bool PullFollower::begin() {
  if (!failure_.empty()) return false;
  if (following_) return true;
  Patience none;
  none.cancelled = [] { return true; };
  const auto opened = area(none);
  if (!opened.ok() && opened.error().code != Errc::cancelled) fail(opened.error());
  if (opened.ok()) following_.emplace(**opened, key_, files_);
  return opened.ok();
}

Deadline PullFollower::step(PulledFiles& from, const std::function<bool()>& stopped) {
  const auto later = deadline_in(kFollowerPause);
  if (!begin()) return later;
  const auto next = following_->step(from, stopped);
  if (!next.ok()) fail(next.error());
  return next.ok() ? *next : later;
}

// The copied files are closed at the end: an import takes a file as it is only if no process can write to the file.
void PullFollower::finish(PulledFiles* last, const std::function<bool()>& stopped) {
  if (last != nullptr && begin())
    if (const Status copied = following_->finish(*last, stopped); !copied.ok()) fail(copied.error());
  following_.reset();
}

void PullFollower::fail(const Error& error) {
  failure_ = error.message;
  following_.reset();
}

}  // namespace weft
