// The parts of garbage collection; collect_packs() in packs.h is their sum. One gc of a store runs at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/sys.h"
#include "store/packs.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// A pack's blobs by whether somebody needs them at this place.
struct JudgedPack {
  std::vector<PackEntry> live;
  std::vector<PackEntry> unheld;    // indexed here, needed by no version
  std::vector<PackEntry> unlisted;  // in no index: an import died between finish and publish
  std::uint64_t moved = 0;          // entries whose blob is indexed elsewhere
  bool all_live() const { return unheld.empty() && unlisted.empty() && moved == 0; }
};
Result<JudgedPack> judge_pack(BlobIndex& index, const PackToc& toc);

std::uint64_t total_bytes(const std::vector<PackEntry>& entries);
// The blocks that these blobs, by offset, touch: what is left when all else is punched.
std::uint64_t pinned_bytes(const std::vector<PackEntry>& entries);
// More than a little above `needed`?
bool is_wasteful(std::uint64_t taken, std::uint64_t needed);

// Opens a pack to change it, under its exclusive lock. Errc::busy: somebody uses it. Errc::not_found.
Result<Fd> open_exclusive(const std::string& path);

// Packs that stay wasteful when punched, and many tiny ones, are copied into new packs and removed.
struct CompactionPlan {
  std::vector<PackId> fragmented;
  std::vector<PackId> tiny;
};
Status compact_packs(Packs& packs, IndexAccess& index, const CompactionPlan& plan, Progress& progress,
                     GcReport& report);

}  // namespace weft
