// The bytes of an open file as parts that lie in memory (OpenFile::in_memory()).
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

// Adds bytes of a pack, mapped and in the page table. Errc::absent if they are not in the page cache: read() reads
// larger parts than page faults would.
Status add_present(MemoryParts& parts, const PackReader& pack, std::uint64_t offset, std::size_t length);

// Implements OpenFile::in_memory() by each_part(). `add(parts, run, within, length)` adds bytes of a run, and returns
// Errc::absent if they do not lie in memory; the result is then empty.
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
