// The bytes of an open file as parts that lie in memory (OpenFile::in_memory()).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "weft/bytes/pack.h"
#include "weft/bytes/run_list.h"
#include "weft/programs/vfs.h"
#include "weft/result.h"

namespace weft {
// Visits [offset, offset + count) of `head` ‖ run 0 ‖ run 1 ‖ …, which must contain it. Calls on_head(part of `head`)
// and then on_run(run, within, length) for each run. A run has its `offset` in the file and its `length`; runs are
// contiguous, from head.size() on.
template <class Run, class OnHead, class OnRun>
Status each_part(std::string_view head, const std::vector<Run>& runs, std::uint64_t offset, std::size_t count,
                 const OnHead& on_head, const OnRun& on_run) {
  if (offset < head.size()) {
    const std::string_view part = head.substr(offset, count);
    on_head(part);
    count -= part.size();
    offset += part.size();
  }
  auto run = run_at(runs, offset);
  for (; count > 0; ++run) {
    const std::uint64_t within = offset - run->offset;
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(count, run->length - within));
    WEFT_CHECK(on_run(*run, within, length));
    count -= length;
    offset += length;
  }
  return {};
}

// Fills `rest` with the bytes from `offset` on. `read(run, within, out)` reads from offset `within` of a run.
template <class Run, class Read>
Status read_runs(std::string_view head, const std::vector<Run>& runs, std::uint64_t offset, std::span<std::byte> rest,
                 const Read& read) {
  return each_part(
      head, runs, offset, rest.size(),
      [&rest](std::string_view part) {
        std::memcpy(rest.data(), part.data(), part.size());
        rest = rest.subspan(part.size());
      },
      [&](const Run& run, std::uint64_t within, std::size_t length) -> Status {
        WEFT_CHECK(read(run, within, rest.first(length)));
        rest = rest.subspan(length);
        return {};
      });
}

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
