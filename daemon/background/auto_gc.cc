#include "daemon/background/auto_gc.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kSpacePoll{10};  // between checks of space; a publisher can fill a disk in minutes
constexpr std::chrono::seconds kAgain{60};      // longest pause after a failed gc

}  // namespace

void AutoGc::start() {
  next_ = time_.now() + actions_.delay();
  worker_.start([this] { return round(); });
}

void AutoGc::removed(VersionId version, VersionHold hold) {
  const std::lock_guard lock(mutex_);
  held_.push_back({time_.now() + actions_.delay(), version, std::move(hold)});
  if (held_.size() > kHeldMax) held_.pop_front();
  worker_.wake();
}

void AutoGc::undeleted(VersionId version) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [version](const Held& held) { return held.version == version; });
}

void AutoGc::look() {
  worker_.wake();
}

void AutoGc::collect_soon() {
  const std::lock_guard lock(mutex_);
  soon_ = true;
  worker_.wake();
}

std::deque<AutoGc::Held> AutoGc::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(held_, {});
}

HeldVersions AutoGc::held() {
  const std::lock_guard lock(mutex_);
  HeldVersions held;
  held.versions = held_.size();
  if (held_.empty()) return held;
  const auto left = held_.front().until - time_.now();
  held.next_release = std::max(std::chrono::ceil<std::chrono::seconds>(left), std::chrono::seconds(0));
  return held;
}

void AutoGc::release() {
  take();
}

// A version that gc frees during `run` cannot be held again.
void AutoGc::run_without(const std::function<void()>& run) {
  std::deque<Held> all = take();
  for (Held& held : all) held.hold.reset();
  run();
  const std::lock_guard lock(mutex_);
  for (auto held = all.rbegin(); held != all.rend(); ++held) {
    auto again = actions_.hold(held->version);
    if (again.ok()) held_.push_front({held->until, held->version, *std::move(again)});
  }
}

// Ends expired holds, or all holds if space is short. True if gc should run. Called with mutex_ held.
bool AutoGc::due() {
  const Deadline now = time_.now();
  bool any = std::exchange(soon_, false) || now >= next_;
  if (!held_.empty() && actions_.space_is_short()) {
    held_.clear();
    any = true;
  }
  while (!held_.empty() && held_.front().until <= now) {
    held_.pop_front();
    any = true;
  }
  return any;
}

// Returns the pause before the next run. Called with mutex_ held.
Worker::Pause AutoGc::pause() const {
  const Deadline now = time_.now();
  const Deadline until = held_.empty() ? next_ : std::min({next_, held_.front().until, now + kSpacePoll});
  return std::max(until - now, Worker::Pause(0));
}

// Ends the holds on purged versions. True if there is one that gc has not tried to free.
bool AutoGc::end_purged() {
  const std::vector<VersionId> purged = actions_.purged ? actions_.purged() : std::vector<VersionId>();
  for (const VersionId version : purged) undeleted(version);
  all_ = all_ || !purged.empty();
  return std::exchange(purged_, purged) != purged && !purged.empty();
}

Result<Worker::Pause> AutoGc::round() {
  const bool purged = end_purged();
  std::unique_lock lock(mutex_);
  if (!due() && !purged) return pause();
  lock.unlock();
  const LogWork work("automatic gc", ++runs_);
  const Status done = actions_.collect(all_, [this] { return worker_.ending(); });
  if (done.ok()) all_ = false;
  if (!done.ok() && !worker_.ending()) log_info("{}: {}", log_work(), done.error().message);
  lock.lock();
  next_ = time_.now() + (done.ok() ? actions_.delay() : std::min(kAgain, actions_.delay()));
  return Worker::Pause(0);
}

// A version that is unknown here or was freed has no content on this node. A live one is about to be removed.
Result<std::vector<VersionId>> PurgedVersions::unfreed() {
  std::vector<VersionId> ids;
  for (const PurgedVersion& purged : registry_.purged()) {
    const auto& [model_name, number] = purged.name;
    const Uuid& uid = purged.uid;
    if (freed_.contains(uid)) continue;
    WEFT_TRY(const auto snapshot, store_.snapshot());
    const auto model = snapshot->model(model_name);
    const auto row = model.ok() ? snapshot->version(model->id, number) : Result<VersionRow>(model.error());
    if (row.ok() && row->uid == uid && !row->removed) continue;
    WEFT_TRY(const bool waits, row.ok() && row->uid == uid ? lists_version(*snapshot, &Snapshot::unreaped, row->id)
                                                           : Result<bool>(false));
    if (waits)
      ids.push_back(row->id);
    else
      freed_.insert(uid);
  }
  return ids;
}

}  // namespace weft
