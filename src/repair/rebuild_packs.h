// The part of a rebuild that locates blobs in packs.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "diskformat/toc.h"
#include "index/env.h"
#include "repair/manifest_rescue.h"
#include "repair/rebuild_input.h"
#include "repair/repair_pack.h"
#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/fsck.h"

namespace weft {

// The results of the search for blobs. The rebuilt index refers to them; nothing is written to packs/ yet.
struct FoundPacks {
  std::vector<PackToc> remade;            // recovered tables of contents, which were damaged or gone
  std::vector<FoundManifests> manifests;  // of damaged packs of manifests
  std::unique_ptr<RepairPack> fresh;      // blobs that only assembled files had undamaged; null if there are none
};

// The extents that versions need, each once. `here`: of versions whose bytes must be local. `elsewhere`: of versions of
// other nodes, whose bytes are fetched when they are read.
struct WantedExtents {
  std::vector<Extent> here, elsewhere;
};

// Indexes the blobs of all packs. They are dead until a version holds them.
Result<FoundPacks> index_packs(Env& env, const WriterLock& lock, const RebuildInput& input,
                               const std::function<Result<WantedExtents>()>& wanted, Progress& progress,
                               FsckReport& report);

}  // namespace weft
