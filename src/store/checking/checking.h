// Checks of a store: fsck, scrub, and the repair of damaged blobs. The functions without a comment are those of Store.
#pragma once

#include <memory>

#include "store/parts/parts.h"
#include "weft/model/version_content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/fsck.h"
#include "weft/store/scrub.h"

namespace weft {

Result<FsckReport> fsck(StoreParts& parts, const FsckOptions& options, const ContentDecoder& decode,
                        Progress& progress);
Result<ScrubReport> scrub(StoreParts& parts, const ScrubOptions& options, Progress& progress);
Result<std::unique_ptr<BlobRepair>> begin_repair(StoreParts& parts);
Status find_missing(StoreParts& parts, FsckReport& report);  // adds the held blobs whose pack is missing

}  // namespace weft
