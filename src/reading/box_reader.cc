#include "reading/box_reader.h"

#include <cstring>

namespace weft {

Status BoxReader::read_cell(std::uint64_t cell, const ReadCell& read) {
  Status done;
  grid_.each_row(cell, range_, [&](const Grid::Row& row) {
    if (!fits(row)) done = flush(read);
    rows_.push_back(row);
    return done.ok();
  });
  if (!done.ok()) return done;
  return flush(read);
}

bool BoxReader::fits(const Grid::Row& row) const {
  if (rows_.empty()) return true;
  const Grid::Row& last = rows_.back();
  return rows_.size() < kBoxRowsMax && row.in_cell - (last.in_cell + last.length) <= kBoxGapMax &&
         row.in_cell + row.length - rows_.front().in_cell <= kBoxWindow;
}

// Reads a single row straight to its place.
Status BoxReader::flush(const ReadCell& read) {
  if (rows_.empty()) return {};
  const std::uint64_t begin = rows_.front().in_cell;
  if (rows_.size() == 1) {
    WEFT_CHECK(read(begin, place_of(rows_.front())));
  } else {
    window_.resize(static_cast<std::size_t>(rows_.back().in_cell + rows_.back().length - begin));
    WEFT_CHECK(read(begin, window_));
    for (const Grid::Row& row : rows_)
      std::memcpy(place_of(row).data(), window_.data() + (row.in_cell - begin), static_cast<std::size_t>(row.length));
  }
  rows_.clear();
  return {};
}

std::span<std::byte> BoxReader::place_of(const Grid::Row& row) const {
  return out_.subspan(static_cast<std::size_t>(row.in_tensor - range_.offset), static_cast<std::size_t>(row.length));
}

}  // namespace weft
