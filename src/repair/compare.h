// Compares an index with one that was made anew from packs, manifests and journal.
#pragma once

#include "index/env.h"
#include "weft/fsck.h"
#include "weft/result.h"

namespace weft {

// A line in report.problems for each row that differs (of many in one table, the first few). `content`: compare what
// manifests decide, too.
Status compare_indexes(Txn& have, Txn& want, bool content, FsckReport& report);

}  // namespace weft
