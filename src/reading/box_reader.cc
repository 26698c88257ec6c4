#include "reading/box_reader.h"

#include <cstring>

namespace weft {

// Rows of several cells are one read: where narrow cells touch, there are thousands of them in a range.
Status BoxReader::read(const ReadMemory& read) {
  Status done;
  for (const std::uint64_t cell : grid_.cells_in(range_)) {
    grid_.each_row(cell, range_, [&](const Grid::Row& row) {
      if (!fits(row)) done = flush(read);
      rows_.push_back(row);
      return done.ok();
    });
    if (!done.ok()) return done;
  }
  return flush(read);
}

bool BoxReader::fits(const Grid::Row& row) const {
  if (rows_.empty()) return true;
  const Grid::Row& last = rows_.back();
  return rows_.size() < kBoxRowsMax && row.in_memory - (last.in_memory + last.length) <= kBoxGapMax &&
         row.in_memory + row.length - rows_.front().in_memory <= kBoxWindow;
}

// Reads a single row straight to its place.
Status BoxReader::flush(const ReadMemory& read) {
  if (rows_.empty()) return {};
  const std::uint64_t begin = rows_.front().in_memory;
  if (rows_.size() == 1) {
    WEFT_CHECK(read(begin, place_of(rows_.front())));
  } else {
    window_.resize(static_cast<std::size_t>(rows_.back().in_memory + rows_.back().length - begin));
    WEFT_CHECK(read(begin, window_));
    for (const Grid::Row& row : rows_)
      std::memcpy(place_of(row).data(), window_.data() + (row.in_memory - begin), static_cast<std::size_t>(row.length));
  }
  rows_.clear();
  return {};
}

std::span<std::byte> BoxReader::place_of(const Grid::Row& row) const {
  return out_.subspan(static_cast<std::size_t>(row.in_tensor - range_.offset), static_cast<std::size_t>(row.length));
}

}  // namespace weft
