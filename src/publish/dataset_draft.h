// The draft of a data set: its files before and while their content is read (draft.h).
#pragma once

#include <vector>

#include "publish/draft.h"
#include "publish/gather.h"
#include "weft/model/manifest.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// As draft_files(). gather_dataset() found the sources, perhaps in another process: so they are checked. Takes twice
// the announced size of the file table as memory, and keeps one half of it.
Result<DraftFiles> draft_dataset(std::vector<SourceFile> sources, Progress& progress);
// Imports the record table of a container that was read, if it has one, and appends its file to `tables`.
Status add_record_table(Import& import, DraftFiles& files, Draft& container, std::vector<File>& tables,
                        Progress& progress);
// Imports the plain SHA-256 of the small files, if there are any, and appends the file with them to the manifest, whose
// last file it is. Call it after Import::finish_sums().
Status add_sums(Import& import, DraftFiles& files, Progress& progress);

}  // namespace weft
