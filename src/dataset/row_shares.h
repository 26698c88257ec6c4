// Shares of the rows of a table: what part/ and order/ show of records. A row is a run of bytes of a whole, and rows
// are in the order of their offsets.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace weft {

class RowShares {
 public:
  // `offset_of` a row below `rows`. The whole has so many bytes.
  RowShares(std::uint64_t rows, std::uint64_t bytes, std::function<std::uint64_t(std::uint64_t)> offset_of)
      : rows_(rows), bytes_(bytes), offset_of_(std::move(offset_of)) {}

  // The rows that begin in part r of `parts` equal parts of the whole: [first, second). Each row is in one part.
  // r < parts.
  std::pair<std::uint64_t, std::uint64_t> part(std::uint64_t parts, std::uint64_t r) const;
  // Rank r's share of an order of all rows that follows from the seed: segments of kSegment bytes, shuffled and dealt
  // evenly, and rows shuffled within kWindow segments. The ranks' shares are all rows, each once. r < parts.
  std::vector<std::uint64_t> order(std::uint64_t seed, std::uint64_t parts, std::uint64_t r) const;

  static constexpr std::uint64_t kSegment = 4U << 20U;
  static constexpr std::size_t kWindow = 16;

 private:
  std::uint64_t first_at(std::uint64_t offset) const;

  const std::uint64_t rows_;
  const std::uint64_t bytes_;
  const std::function<std::uint64_t(std::uint64_t)> offset_of_;
};

}  // namespace weft
