#include "peers/given_lately.h"

#include <algorithm>

namespace weft {

bool GivenLately::give(std::string_view node, std::span<const ChunkRun> runs, bool yields, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (yields && std::ranges::any_of(runs, [&](const ChunkRun& run) { return given_to_other(node, run, now); }))
    return false;
  for (const ChunkRun& run : runs)
    for (std::uint64_t chunk = run.first; chunk < run.first + run.count; ++chunk) {
      if (given_.size() >= kChunksMax) drop_old(now);
      given_.insert_or_assign({run.id.root, chunk}, Given{std::string(node), now});
    }
  return true;
}

void GivenLately::forget(std::string_view node, std::span<const ChunkRun> runs) {
  const std::lock_guard lock(mutex_);
  for (const ChunkRun& run : runs)
    for (std::uint64_t chunk = run.first; chunk < run.first + run.count; ++chunk) {
      const auto found = given_.find({run.id.root, chunk});
      if (found != given_.end() && found->second.node == node) given_.erase(found);
    }
}

bool GivenLately::given_to_other(std::string_view node, const ChunkRun& run, Clock::time_point now) const {
  for (auto at = given_.lower_bound({run.id.root, run.first});
       at != given_.end() && at->first < Chunk{run.id.root, run.first + run.count}; ++at)
    if (at->second.node != node && at->second.at + kFor > now) return true;
  return false;
}

// Drops expired records. If too many are left, drops all, so that some chunks are uploaded twice.
void GivenLately::drop_old(Clock::time_point now) {
  std::erase_if(given_, [now](const auto& one) { return one.second.at + kFor <= now; });
  if (given_.size() >= kChunksMax) given_.clear();
}

std::size_t GivenLately::chunks() const {
  const std::lock_guard lock(mutex_);
  return given_.size();
}

}  // namespace weft
