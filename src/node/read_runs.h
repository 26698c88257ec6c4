// Reading a file that is bytes in memory, then runs of packs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "weft/result.h"

namespace weft {

// Fills `rest` from `offset` of `head` ‖ run 0 ‖ run 1 ‖ …, which must reach so far. A run has its `offset` in the file
// and its `length`; they touch, from head.size() on. `read(run, within, out)` reads from `within` of a run.
template <class Run, class Read>
Status read_runs(std::string_view head, const std::vector<Run>& runs, std::uint64_t offset, std::span<std::byte> rest,
                 const Read& read) {
  if (offset < head.size()) {
    const std::size_t part = std::min<std::size_t>(rest.size(), head.size() - offset);
    std::memcpy(rest.data(), head.data() + offset, part);
    rest = rest.subspan(part);
    offset += part;
  }
  auto run = std::upper_bound(runs.begin(), runs.end(), offset,
                              [](std::uint64_t at, const Run& one) { return at < one.offset + one.length; });
  for (; !rest.empty(); ++run) {
    const std::uint64_t within = offset - run->offset;
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), run->length - within));
    WEFT_CHECK(read(*run, within, rest.first(part)));
    rest = rest.subspan(part);
    offset += part;
  }
  return {};
}

}  // namespace weft
