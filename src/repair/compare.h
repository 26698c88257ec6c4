// Compares an index with one that was made anew from packs, manifests and journal, while writers go on with the first.
#pragma once

#include <functional>

#include "index/env.h"
#include "packs/packs.h"
#include "weft/fsck.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

struct ComparedIndexes {
  Env& have;
  Env& want;
  const PackDir& packs;
  // Replays into `want` what the journal of `have` has by now.
  std::function<Status()> follow;
  // Nobody changes `have` while the lock lives.
  std::function<Result<WriterLock>()> lock;
  // Whether `want` has the content of all versions. If not, only names, versions and tags are compared.
  std::function<bool()> has_content;
  const Progress& progress;
};

// A line in report.problems for each row that differs (of many in one table, the first few). No snapshot is held for
// longer than some thousand rows take. A row that differs is looked at again under the lock, which is held only for so
// long.
Status compare_indexes(const ComparedIndexes& indexes, FsckReport& report);

}  // namespace weft
