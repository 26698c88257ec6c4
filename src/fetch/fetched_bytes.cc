#include "fetch/fetched_bytes.h"

#include <utility>

#include "blobs/open_blobs.h"

namespace weft {

bool FetchedBytes::is_coming(const ContentId& blob) const {
  const MutexLock lock(state_.mutex);
  return state_.table.find(blob) != nullptr;
}

Result<std::vector<OpenPlace>> FetchedBytes::here(std::span<const ChunkRun> runs) {
  std::vector<OpenPlace> places;
  std::vector<ContentId> others;
  {
    const MutexLock lock(state_.mutex);
    for (const ChunkRun& run : runs) {
      places.push_back(state_.table.arrived(run));
      if (!places.back().pack) others.push_back(run.id);
    }
  }
  if (others.empty()) return places;
  WEFT_TRY(auto stored, open_present_blobs(store_, others));
  for (std::size_t i = 0, next = 0; i < runs.size(); ++i) {
    if (places[i].pack) continue;
    places[i] = std::move(stored[next++]);
    places[i].offset += runs[i].offset();
  }
  return places;
}

Result<std::vector<Digest>> FetchedBytes::digests(const ContentId& id) {
  if (const auto proof = sources_.known_proof(id)) return *proof;
  return cache_.chunks(id);
}

}  // namespace weft
