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
  std::erase_if(holders, [&](const auto& one) WEFT_REQUIRES(mutex_) {
    if (one.second.until > now) return false;
    bytes_ -= one.second.had.bits.size();
    return true;
  });
}

// Drops announcements that were not repeated. If too many are left, drops arbitrary manifests.
void PeerDirectory::make_room(Clock::time_point now) {
  for (auto at = holders_.begin(); at != holders_.end();) {
    drop_old(at->second, now);
    at = at->second.empty() ? holders_.erase(at) : std::next(at);
  }
  while (!holders_.empty() && (holders_.size() >= kManifestsMax || bytes_ >= kBytesMax)) {
    for (const auto& [node, entry] : holders_.begin()->second) bytes_ -= entry.had.bits.size();
    holders_.erase(holders_.begin());
  }
}

void PeerDirectory::put(std::string_view node, HadChunks had, Clock::time_point now) {
  const MutexLock lock(mutex_);
  const bool full =
      (holders_.size() >= kManifestsMax && !holders_.contains(had.manifest)) || bytes_ + had.bits.size() > kBytesMax;
  if (full) make_room(now);
  Holders& holders = holders_[had.manifest];
  auto at = holders.find(node);
  if (at == holders.end()) {
    drop_old(holders, now);
    if (holders.size() >= limits::kHoldersMax) return;
    at = holders.emplace(node, Entry{}).first;
  }
  bytes_ += had.bits.size();
  bytes_ -= at->second.had.bits.size();
  had.node = node;
  at->second = {std::move(had), now + kKept};
}

std::vector<HadChunks> PeerDirectory::find(const Digest& manifest, Clock::time_point now) {
  const MutexLock lock(mutex_);
  std::vector<HadChunks> out;
  const auto found = holders_.find(manifest);
  if (found == holders_.end()) return out;
  drop_old(found->second, now);
  for (const auto& [node, entry] : found->second) out.push_back(entry.had);
  return out;
}

std::size_t PeerDirectory::manifests() const {
  const MutexLock lock(mutex_);
  return holders_.size();
}

}  // namespace weft
