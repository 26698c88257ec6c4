// Compares an index with one that was rebuilt from packs, manifests and journal, while writers keep changing the first.
#pragma once

#include <functional>

#include "index/env.h"
#include "packs/packs.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/fsck.h"

namespace weft {

struct ComparedIndexes {
  Env& have;
  Env& want;
  const PackDir& packs;
  // Replays into `want` the records that the journal of `have` has gained.
  std::function<Status()> follow;
  // Returns the writer lock of `have`.
  std::function<Result<WriterLock>()> lock;
  // True if `want` has the content of all versions. If not, only names, versions and tags are compared.
  std::function<bool()> has_content;
  const Progress& progress;
};

// Adds a line to report.problems for each row that differs, at most a few lines per table. Renews its snapshots after
// some thousand rows. Judges a row that differs again under the lock, which it holds for a few rows at a time.
Status compare_indexes(const ComparedIndexes& indexes, FsckReport& report);

}  // namespace weft
