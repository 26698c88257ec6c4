#include "peers/directory.h"

#include <algorithm>

#include "base/limits.h"

namespace weft {

void PeerDirectory::drop_old(Holders& holders, Clock::time_point now) {
  count_ -= std::erase_if(holders, [now](const auto& one) { return one.second <= now; });
}

// Drops announcements that were not repeated. If too many are left, drops arbitrary manifests.
void PeerDirectory::make_room(Clock::time_point now) {
  for (auto at = holders_.begin(); at != holders_.end();) {
    drop_old(at->second, now);
    at = at->second.empty() ? holders_.erase(at) : std::next(at);
  }
  while (!holders_.empty() && (holders_.size() >= kManifestsMax || count_ >= kEntriesMax)) {
    count_ -= holders_.begin()->second.size();
    holders_.erase(holders_.begin());
  }
}

void PeerDirectory::put(std::string_view node, const Announce& said, Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (!said.whole) {
    const auto found = holders_.find(said.manifest);
    if (found == holders_.end()) return;
    if (const auto at = found->second.find(node); at != found->second.end()) {
      found->second.erase(at);
      --count_;
    }
    return;
  }
  if (count_ >= kEntriesMax || (holders_.size() >= kManifestsMax && !holders_.contains(said.manifest))) make_room(now);
  Holders& holders = holders_[said.manifest];
  auto at = holders.find(node);
  if (at == holders.end()) {
    drop_old(holders, now);
    if (holders.size() >= limits::kHoldersMax) return;
    at = holders.emplace(node, now).first;
    ++count_;
  }
  at->second = now + kKept;
}

std::vector<std::string> PeerDirectory::find(const Digest& manifest, Clock::time_point now) {
  const MutexLock lock(mutex_);
  std::vector<std::string> out;
  const auto found = holders_.find(manifest);
  if (found == holders_.end()) return out;
  drop_old(found->second, now);
  for (const auto& [node, until] : found->second) out.push_back(node);
  return out;
}

std::size_t PeerDirectory::manifests() const {
  const MutexLock lock(mutex_);
  return holders_.size();
}

}  // namespace weft
