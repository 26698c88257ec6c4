// Lists of runs of bytes (header only): ranges, extents, entries of a pack, or anything else that has an offset, and a
// length or a ContentId. The runs of a list are in order of their offsets, and none overlaps another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/content.h"

namespace weft {

template <class AnyRun>
std::uint64_t length_of(const AnyRun& run) {
  if constexpr (requires { run.length; })
    return run.length;
  else
    return run.id.length;
}

template <class AnyRun>
std::uint64_t end_of(const AnyRun& run) {
  return run.offset + length_of(run);
}

// True if `next` continues `last`, so that both are one run. Other kinds of runs have their own overload.
inline bool goes_on(const Range& last, const Range& next) {
  return end_of(last) == next.offset;
}

// Extends the last run if `run` continues it, else appends `run`. Returns true if it extended a run.
template <class AnyRun>
bool append_run(std::vector<AnyRun>& runs, AnyRun run) {
  if (runs.empty() || !goes_on(runs.back(), run)) {
    runs.push_back(std::move(run));
    return false;
  }
  runs.back().length += run.length;
  return true;
}

// Returns the first run that ends after `offset`: the run that has this byte, or else the next one.
template <class Runs>
auto run_at(Runs& runs, std::uint64_t offset) {
  return std::upper_bound(runs.begin(), runs.end(), offset,
                          [](std::uint64_t at, const auto& run) { return at < end_of(run); });
}

// Returns the indexes [first, second) of the runs that overlap a range.
template <class Runs>
std::pair<std::size_t, std::size_t> runs_in(const Runs& runs, Range range) {
  const auto first = run_at(runs, range.offset);
  const auto end = std::lower_bound(first, runs.end(), end_of(range),
                                    [](const auto& run, std::uint64_t at) { return run.offset < at; });
  return {static_cast<std::size_t>(first - runs.begin()), static_cast<std::size_t>(end - runs.begin())};
}

template <class Runs>
bool overlaps_any(const Runs& runs, Range range) {
  const auto [first, end] = runs_in(runs, range);
  return first < end;
}

// Returns the common part of two ranges. Its length is 0 if there is none.
inline Range overlap(Range a, Range b) {
  const std::uint64_t begin = std::max(a.offset, b.offset);
  const std::uint64_t end = std::min(end_of(a), end_of(b));
  return {begin, end > begin ? end - begin : 0};
}

}  // namespace weft
