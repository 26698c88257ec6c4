// Shares of the rows of a table, as part/ and order/ show them. A row is a run of bytes of a whole, such as a
// container. Rows are in the order of their offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace weft {

// One rank's share of a shuffled order. Uses 16 bytes of memory for each segment, and computes the rows of a window
// when they are read. Does not need the table; any thread.
class RowOrder {
 public:
  static constexpr std::size_t kWindow = 16;  // segments

  std::uint64_t size() const { return segments_.empty() ? 0 : segments_.back().end; }
  // Reads the rows from place `first` of the share on. `out` lies within its size.
  void read(std::uint64_t first, std::span<std::uint64_t> out) const;
  std::vector<std::uint64_t> rows() const;
  std::size_t memory_bytes() const { return segments_.capacity() * sizeof(Segment); }

 private:
  friend class RowShares;
  struct Segment {
    std::uint64_t first_row = 0;
    std::uint64_t end = 0;  // place in the share after its last row
  };
  std::uint64_t begin_of(std::size_t segment) const { return segment == 0 ? 0 : segments_[segment - 1].end; }
  std::vector<std::uint64_t> window(std::size_t number) const;

  std::vector<Segment> segments_;  // each has rows
  std::uint64_t seed_ = 0;         // seed of the windows
};

class RowShares {
 public:
  // `offset_of` returns the offset of a row. `bytes` is the size of the whole.
  RowShares(std::uint64_t rows, std::uint64_t bytes, std::function<std::uint64_t(std::uint64_t)> offset_of)
      : rows_(rows), bytes_(bytes), offset_of_(std::move(offset_of)) {}

  // Returns the rows that begin in part r of `parts` equal parts of the whole: [first, second). Each row is in one
  // part. r < parts.
  std::pair<std::uint64_t, std::uint64_t> part(std::uint64_t parts, std::uint64_t r) const;
  // Returns rank r's share of an order of all rows that the seed determines. Segments of kSegment bytes, or of
  // kSegmentRows, are shuffled and dealt evenly. Then the rows are shuffled within windows of kWindow segments. The
  // shares of all ranks have each row once. r < parts.
  RowOrder order(std::uint64_t seed, std::uint64_t parts, std::uint64_t r) const;

  static constexpr std::uint64_t kSegment = 4U << 20U;
  static constexpr std::uint64_t kSegmentRows = 65'536;  // maximum, because a window is computed as a whole
  static constexpr std::size_t kWindow = RowOrder::kWindow;

 private:
  std::uint64_t first_at(std::uint64_t offset) const;

  const std::uint64_t rows_;
  const std::uint64_t bytes_;
  const std::function<std::uint64_t(std::uint64_t)> offset_of_;
};

}  // namespace weft
