// A run of bytes of a file that is also a run of one pack (header only).
#pragma once

#include <cstdint>

#include "weft/bytes/pack.h"
#include "weft/bytes/run_list.h"

namespace weft {

// [offset, offset + length) of a file lies in place.pack from place.offset on, for as long as place.pack lives.
struct Run {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  OpenPlace place;
};

inline bool goes_on(const Run& last, const Run& next) {
  return end_of(last) == next.offset && last.place.pack == next.place.pack &&
         last.place.offset + last.length == next.place.offset;
}

// Returns the part of a run between two offsets of the file that lie in it.
inline Run part_of(const Run& run, std::uint64_t begin, std::uint64_t end) {
  return {begin, end - begin, {run.place.pack, run.place.offset + (begin - run.offset)}};
}

}  // namespace weft
