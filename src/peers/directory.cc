#include "peers/directory.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/limits.h"
#include "base/sha256.h"

namespace weft {
namespace {

Digest weight(const Digest& manifest, std::string_view node) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(manifest.bytes)));
  hash.update(std::as_bytes(std::span(node)));
  return hash.finish();
}

}  // namespace

std::vector<std::string> directory_nodes(const Digest& manifest, std::span<const std::string> nodes,
                                         std::size_t count_max) {
  std::vector<std::pair<Digest, std::string>> weighed;
  for (const std::string& node : nodes) weighed.emplace_back(weight(manifest, node), node);
  const std::size_t count = std::min(count_max, weighed.size());
  std::partial_sort(weighed.begin(), weighed.begin() + static_cast<std::ptrdiff_t>(count), weighed.end(),
                    std::greater<>());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(std::move(weighed[i].second));
  return out;
}

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
