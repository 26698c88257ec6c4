#include "monitor/mount_table.h"

#include <algorithm>

#include "base/limits.h"

namespace weft {
namespace {

void add(MountRequests& to, const MountRequests& from) {
  to.nanoseconds += from.nanoseconds;
  for (std::size_t i = 0; i < to.took.size(); ++i) to.took[i] += from.took[i];
}

void add(MountFigures& to, const MountFigures& from) {
  to.passthrough = to.passthrough && from.passthrough;
  to.passthrough_refused += from.passthrough_refused;
  to.restarts += from.restarts;
  for (const MountRequests& requests : from.requests) {
    const auto same = std::ranges::find(to.requests, requests.kind, &MountRequests::kind);
    same == to.requests.end() ? to.requests.push_back(requests) : add(*same, requests);
  }
}

// A report may name a kind twice; its figures then have it once.
MountFigures with_kinds_once(const MountFigures& figures) {
  MountFigures once = figures;
  once.requests.clear();
  MountFigures nothing = {.passthrough = figures.passthrough, .requests = figures.requests};
  add(once, nothing);
  return once;
}

}  // namespace

void MountTable::forget_old() {
  std::erase_if(entries_, [now = time_.now()](const auto& one) { return one.second.until <= now; });
}

void MountTable::report(uid_t user, MountFigures figures) {
  const MutexLock lock(mutex_);
  forget_old();
  const Key key(user, figures.id);
  const auto known = entries_.find(key);
  if (known == entries_.end()) {
    const auto of_user = std::ranges::count_if(entries_, [user](const auto& one) { return one.first.first == user; });
    if (entries_.size() >= limits::kMountsMax || static_cast<std::size_t>(of_user) >= limits::kMountsOfUserMax) return;
  }
  entries_.insert_or_assign(key, Entry{time_.now() + kKept, with_kinds_once(figures)});
}

std::vector<MountTable::Mount> MountTable::mounts() const {
  const MutexLock lock(mutex_);
  std::vector<Mount> out;
  for (const auto& [key, entry] : entries_) {
    const uid_t user = key.first;
    const MountFigures& figures = entry.figures;
    if (entry.until <= time_.now()) continue;
    const auto same = std::ranges::find_if(
        out, [&](const Mount& mount) { return mount.user == user && mount.figures.directory == figures.directory; });
    if (same == out.end())
      out.push_back({user, figures});
    else
      add(same->figures, figures);
  }
  return out;
}

}  // namespace weft
