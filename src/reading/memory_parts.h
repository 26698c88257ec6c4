// Where the bytes of an open file lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reading/read_runs.h"
#include "weft/pack.h"
#include "weft/result.h"
#include "weft/vfs.h"

namespace weft {

// Adds bytes of a pack, mapped and in the page table. Errc::absent when they are not in the page cache: those are read
// by read(), since a fault brings single pages.
Status add_present(MemoryParts& parts, const PackReader& pack, std::uint64_t offset, std::size_t length);

// As OpenFile::in_memory(), for each_part(): `add(parts, run, within, length)` adds bytes of a run, and gives
// Errc::absent where they do not lie in memory.
template <class Run, class Add>
Result<MemoryParts> memory_parts(std::string_view head, const std::vector<Run>& runs, std::uint64_t offset,
                                 std::size_t count, const Add& add) {
  MemoryParts parts;
  const Status all = each_part(
      head, runs, offset, count, [&parts](std::string_view part) { parts.push_back(std::as_bytes(std::span(part))); },
      [&](const Run& run, std::uint64_t within, std::size_t length) -> Status {
        return add(parts, run, within, length);
      });
  if (all.ok()) return parts;
  if (all.error().code == Errc::absent) return MemoryParts();
  return all.error();
}

}  // namespace weft
