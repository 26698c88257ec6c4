// Queries of a store. The functions are those of Store. Any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "store/parts/parts.h"
#include "weft/bytes/pack.h"
#include "weft/result.h"
#include "weft/store/commits.h"
#include "weft/store/snapshot.h"
#include "weft/store_rows.h"

namespace weft {

Result<std::unique_ptr<Snapshot>> open_snapshot(StoreParts& parts);
Result<CommitBatch> commits_from(StoreParts& parts, std::uint64_t from);
Result<std::unique_ptr<CommitWatch>> watch_commits(StoreParts& parts);
Result<StoreCounts> count_store(StoreParts& parts);
Result<std::uint64_t> count_open_removed(StoreParts& parts);
Result<VersionId> keeper_of(StoreParts& parts, const InodeRow& view);
Result<VersionHold> hold_version(StoreParts& parts, VersionId version);

}  // namespace weft
