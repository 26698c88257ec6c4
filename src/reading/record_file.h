// An LMDB file that is local and lies in one pack, read record by record: the kernel would read it page by page.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "weft/model/records.h"
#include "weft/programs/vfs.h"

namespace weft {

inline constexpr std::string_view kLmdbFormat = "lmdb";  // File::format

// True if reading by record pays for `file`, which has a backing file. False if most of the file is in the page cache:
// then passthrough is faster.
bool reads_by_record(const OpenFile& file);

// Returns `file` with OpenFile::record_at() and read_record(), and without its backing file. Without `rows`, the first
// record_at() starts a scan for the records in the background, and waits for it for a fraction of a second: as long as
// the kernel would take for a few records. Until the scan ends, or if the file is malformed, no records are known.
std::shared_ptr<OpenFile> open_by_record(std::shared_ptr<OpenFile> file, std::optional<RecordRows> rows);

}  // namespace weft
