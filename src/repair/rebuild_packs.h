// Rebuild: what lies where.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "diskformat/toc.h"
#include "index/env.h"
#include "repair/rebuild_input.h"
#include "repair/repair_pack.h"
#include "weft/content.h"
#include "weft/fsck.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// What the search for blobs found. The index names it, and nothing of it is in place yet.
struct FoundPacks {
  std::vector<PackToc> remade;        // tables of contents that were damaged or gone
  std::unique_ptr<RepairPack> fresh;  // blobs that assembled files alone had whole; null if there are none
};

// The content that versions need, each once: of those whose bytes must be here, and of those of other nodes, which
// fetch it when it is read.
struct WantedExtents {
  std::vector<Extent> here, elsewhere;
};

// Indexes the blobs of all packs, dead until a version holds them.
Result<FoundPacks> index_packs(Env& env, const WriterLock& lock, const RebuildInput& input,
                               const std::function<Result<WantedExtents>()>& wanted, Progress& progress,
                               FsckReport& report);

}  // namespace weft
