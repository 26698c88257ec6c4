// A data set before and while its content is read (draft.h).
#pragma once

#include <vector>

#include "publish/draft.h"
#include "publish/gather.h"
#include "weft/manifest.h"
#include "weft/progress.h"
#include "weft/publish.h"
#include "weft/result.h"

namespace weft {

// As draft_files(). The sources are as gather_dataset() gives them, maybe in another process: what they say is checked.
Result<DraftFiles> draft_dataset(std::vector<SourceFile> sources, Progress& progress);
// After add_content(): imports the record tables that it found, and adds them to the manifest.
Status add_record_tables(Import& import, DraftFiles& files, Progress& progress);
std::uint64_t count_records(const DraftFiles& files);  // of all containers

}  // namespace weft
