// The two marks at the beginning of a journal's copy.
#pragma once

#include <cstdint>
#include <optional>

#include "diskformat/rows.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kMarkBlock = 4096;
inline constexpr std::uint64_t kMarksBytes = 2 * kMarkBlock;  // the records follow

// The mark that reaches furthest; none where neither verifies.
Result<std::optional<Counters>> last_mark(int fd, std::string_view where);
// Over the other one, so that a write that is torn leaves the last.
Status put_mark(int fd, const Counters& counters, std::string_view where);
// No mark reaches past `journal_end` any more; what they say of numbers stays.
Status pull_marks_back(int fd, std::uint64_t journal_end, std::string_view where);

}  // namespace weft
