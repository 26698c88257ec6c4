#include "peers/recent_uploads.h"

#include <algorithm>

namespace weft {

bool RecentUploads::record(std::string_view node, std::span<const ChunkRun> runs, bool yields, Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (yields &&
      std::ranges::any_of(runs, [&](const ChunkRun& run) WEFT_REQUIRES(mutex_) { return is_at_other(node, run, now); }))
    return false;
  for (const ChunkRun& run : runs)
    for (std::uint64_t chunk = run.first; chunk < run.first + run.count; ++chunk) {
      if (uploads_.size() >= kChunksMax) drop_old(now);
      uploads_.insert_or_assign({run.id.root, chunk}, Upload{std::string(node), now});
    }
  return true;
}

void RecentUploads::forget(std::string_view node, std::span<const ChunkRun> runs) {
  const MutexLock lock(mutex_);
  for (const ChunkRun& run : runs)
    for (std::uint64_t chunk = run.first; chunk < run.first + run.count; ++chunk) {
      const auto found = uploads_.find({run.id.root, chunk});
      if (found != uploads_.end() && found->second.node == node) uploads_.erase(found);
    }
}

bool RecentUploads::is_at_other(std::string_view node, const ChunkRun& run, Clock::time_point now) const {
  for (auto at = uploads_.lower_bound({run.id.root, run.first});
       at != uploads_.end() && at->first < Chunk{run.id.root, run.first + run.count}; ++at)
    if (at->second.node != node && at->second.at + kFor > now) return true;
  return false;
}

// Drops expired records. If too many are left, drops all, so that some chunks are uploaded twice.
void RecentUploads::drop_old(Clock::time_point now) {
  std::erase_if(uploads_, [now](const auto& one) { return one.second.at + kFor <= now; });
  if (uploads_.size() >= kChunksMax) uploads_.clear();
}

std::size_t RecentUploads::chunks() const {
  const MutexLock lock(mutex_);
  return uploads_.size();
}

}  // namespace weft
