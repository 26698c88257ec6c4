// Abandoned drafts in new/ of the mounts, which gc removes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::chrono::seconds kDraftsKept = std::chrono::hours(7 * 24);

struct OldDraft {
  std::string path;               // below new/
  std::uint64_t bytes = 0;        // as DraftCount counts; a file in several drafts counts in one of them
  std::uint64_t unwritten_s = 0;  // seconds since the last change
};
inline void fields(JsonFields& f, OldDraft& m) {
  f("path", m.path)("bytes", m.bytes)("unwritten_seconds", m.unwritten_s);
}

// Returns the drafts that were not changed for `kept` and have no file open for writing. Empty if the store has no
// drafts, or if this user may not read them. A draft is a directory or file in new/, or in a namespace of new/.
Result<std::vector<OldDraft>> old_drafts(const std::string& store_path, std::chrono::seconds kept);
// Removes old_drafts() and returns them.
Result<std::vector<OldDraft>> remove_old_drafts(const std::string& store_path, std::chrono::seconds kept);

}  // namespace weft
