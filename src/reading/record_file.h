// An LMDB file that is local and lies in one pack, read record by record: the kernel would read it page by page.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "weft/records.h"
#include "weft/vfs.h"

namespace weft {

inline constexpr std::string_view kLmdbFormat = "lmdb";  // File::format

// Is `file`, which has a backing file, worth it? Not if most of it is in the page cache, where passthrough is faster.
bool reads_by_record(const OpenFile& file);

// `file` with OpenFile::record_at() and read_record(), and without its backing file. Without `rows`, the first
// record_at() begins to look up the records, in the background, and waits for a fraction of a second: as long as the
// kernel would take for a few records. None are known until then, or if the file cannot be understood.
std::shared_ptr<OpenFile> open_by_record(std::shared_ptr<OpenFile> file, std::optional<RecordRows> rows);

}  // namespace weft
