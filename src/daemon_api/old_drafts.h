// Drafts of a mount's new/ that nobody has written to for long: gc removes them.
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
  std::string path;  // below new/
  std::uint64_t bytes = 0;
  std::uint64_t unwritten_s = 0;  // for how long nobody has written to it
};
inline void fields(JsonFields& f, OldDraft& m) {
  f("path", m.path)("bytes", m.bytes)("unwritten_seconds", m.unwritten_s);
}

// Those that nobody has written to for so long; nothing where the store has no drafts, or this user may not look at
// them. A draft is a directory or a file of new/, or of a namespace in it.
Result<std::vector<OldDraft>> old_drafts(const std::string& store_path, std::chrono::seconds kept);
// Removes them, unless somebody has a file of one open for writing. Returns those that are gone.
Result<std::vector<OldDraft>> remove_old_drafts(const std::string& store_path, std::chrono::seconds kept);

}  // namespace weft
