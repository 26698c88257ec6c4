#include "daemon/background/kept_versions.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/log.h"
#include "daemon_api/changes.h"
#include "fetch/requests/version.h"
#include "weft/progress.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

// Pins the version first, so that no fetched byte is evicted.
Status keep_now(Store& store, Fetcher& fetcher, const std::string& spec, Progress& progress) {
  WEFT_TRY(const VersionRow row, version_of(store, spec));
  WEFT_CHECK(change_pin(store, {spec, true}));
  WEFT_CHECK(fetch_version(store, fetcher, row, "", progress, Traffic::staging));
  return {};
}

}  // namespace

void KeptVersions::begin(Store& store, Fetcher& fetcher) {
  worker_.start([this, &store, &fetcher] { return round(store, fetcher); });
}

Status KeptVersions::keep(const KeepVersion& version) {
  {
    const MutexLock lock(mutex_);
    if (std::ranges::find(waiting_, version) != waiting_.end()) return {};
    if (waiting_.size() >= kWaitingMax)
      return Error{Errc::busy, fmt::format("{} versions wait to be kept here already", waiting_.size())};
    waiting_.push_back(version);
  }
  worker_.wake();
  return {};
}

Result<Worker::Pause> KeptVersions::round(Store& store, Fetcher& fetcher) {
  std::string spec;
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) return Worker::kUntilWoken;
    spec = spec_of(waiting_.front().model, waiting_.front().number);
  }
  SilentProgress progress([this] { return worker_.ending(); });
  const Status kept = keep_now(store, fetcher, spec, progress);
  if (kept.ok())
    log_info("{} is kept here for another node: fetched and pinned", spec);
  else
    log_warning("{} cannot be kept here for another node: {}", spec, kept.error().message);
  const MutexLock lock(mutex_);
  waiting_.pop_front();
  return Worker::Pause(0);
}

}  // namespace weft
