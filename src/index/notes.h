// What is noted of single versions, in `meta`: a note's key is its name and the version's id.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "index/tables.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Live and bare, or a rebuild could not read its content: it has no holders, so gc must not judge by them.
inline constexpr std::string_view kIncomplete = "incomplete";
inline constexpr std::string_view kUnsaved = "unsaved";  // published here, and not at the origin yet
inline constexpr std::string_view kPinned = "pinned";
inline constexpr std::string_view kUnreaped = "unreaped";  // removed, and gc has not given its content back yet
// Not of a version, of a pack: it is cached.
inline constexpr std::string_view kCached = "cached";

std::string note_key(std::string_view note, std::uint64_t id);
Status put_note(Txn& txn, std::string_view note, std::uint64_t id);
Status erase_note(Txn& txn, std::string_view note, std::uint64_t id);  // fine when it is not there
Result<bool> has_note(Txn& txn, std::string_view note, std::uint64_t id);
// The first `count_max` ids from `from` on.
Result<std::vector<std::uint64_t>> noted(Txn& txn, std::string_view note, std::uint64_t from, std::size_t count_max);

inline Result<bool> is_incomplete(Txn& txn, VersionId version) {
  return has_note(txn, kIncomplete, version);
}

}  // namespace weft
