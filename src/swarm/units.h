// The units of a version in a swarm: what is asked for, sent and verified at once. A unit is one chunk, or several
// consecutive chunks of a version with more than kUnitsMax chunks, so that a set of units takes 4 KiB at most. Chunks
// are numbered as peers/swarm/version_units.h does. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

inline constexpr std::uint32_t kUnitsMax = 32'768;

class Units {
 public:
  explicit Units(std::uint64_t chunks)
      : chunks_(chunks), chunks_per_unit_(std::max<std::uint64_t>(1, chunks / kUnitsMax + (chunks % kUnitsMax != 0))) {}

  std::uint64_t chunks() const { return chunks_; }
  std::uint64_t chunks_per_unit() const { return chunks_per_unit_; }
  std::uint32_t count() const {
    return static_cast<std::uint32_t>(chunks_ / chunks_per_unit_ + (chunks_ % chunks_per_unit_ != 0));
  }
  std::uint32_t unit_of(std::uint64_t chunk) const { return static_cast<std::uint32_t>(chunk / chunks_per_unit_); }
  std::uint64_t first_chunk(std::uint32_t unit) const { return unit * chunks_per_unit_; }
  // Of a unit below count(); the last unit may have fewer chunks.
  std::uint64_t chunks_in(std::uint32_t unit) const { return std::min(chunks_per_unit_, chunks_ - first_chunk(unit)); }

 private:
  std::uint64_t chunks_;
  std::uint64_t chunks_per_unit_;
};

}  // namespace weft
