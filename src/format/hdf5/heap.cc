#include "format/hdf5/heap.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/limits.h"
#include "format/hdf5/checksum.h"

namespace weft {
namespace {

constexpr std::string_view kHeapHeader = "heap header";
constexpr std::string_view kHeapBlock = "heap block";
constexpr std::size_t kHeapSum = 4;
constexpr std::uint64_t kHeapBlockMax = 1ULL << 40U;  // bytes of heap below one block; sums over all rows fit 64 bits
constexpr std::uint64_t kHeapIndirectHead = 5;        // signature, version

}  // namespace

Result<Hdf5Heap> Hdf5Heap::open(Hdf5File& file, std::uint64_t header) {
  Hdf5Heap heap(file, header);
  WEFT_CHECK(heap.read_header());
  return heap;
}

Error Hdf5Heap::broken(std::string_view what) const {
  return hdf5_error(fmt::format("{} at {}: {}", kHeapHeader, header_, what));
}

Status Hdf5Heap::read_header() {
  const Hdf5Widths widths = file_.widths();
  WEFT_TRY(const Hdf5Block bytes,
           file_.block(kHeapHeader, header_, 22 + 12 * widths.length + 3 * widths.address + kHeapSum));
  WEFT_CHECK(Hdf5File::check_signature(kHeapHeader, header_, bytes, "FRHP"));
  Hdf5Fields fields = file_.fields(bytes);
  fields.skip(7);
  if (fields.number(2) != 0) return broken("expected no filters, got some");
  WEFT_CHECK(file_.check_sum(kHeapHeader, header_, bytes));
  checked_ = (fields.number(1) & 2U) != 0;
  const std::uint64_t object_max = fields.number(4);
  fields.skip(10 * widths.length + 2 * widths.address);  // counts, and places of other objects
  width_ = fields.number(2);
  start_ = fields.length();
  direct_max_ = fields.length();
  const std::uint64_t bits = fields.number(2);
  fields.skip(2);
  root_ = fields.address();
  root_rows_ = fields.number(2);
  if (!std::has_single_bit(width_) || !std::has_single_bit(start_) || !std::has_single_bit(direct_max_) ||
      direct_max_ < start_ || direct_max_ > limits::kHdf5BlockMax || bits == 0 || bits > 64)
    return broken("its sizes contradict one another");
  offset_bytes_ = static_cast<std::size_t>((bits + 7) / 8);
  length_bytes_ = std::min(hdf5_width(direct_max_), hdf5_width(object_max));
  return {};
}

Result<std::span<const std::byte>> Hdf5Heap::object(std::span<const std::byte> id) {
  Hdf5Fields fields = file_.fields(id);
  const std::uint64_t flags = fields.number(1), type = (flags >> 4U) & 3U;
  if (type == 2) {  // the object is in its identifier
    const auto tiny = fields.bytes((flags & 15U) + 1);
    if (fields.ended()) return broken("an object is longer than its identifier");
    return tiny;
  }
  if (type != 0) return broken("an object lies outside of the heap");
  const std::uint64_t offset = fields.number(offset_bytes_), length = fields.number(length_bytes_);
  if (fields.ended()) return broken("an identifier is too short");
  WEFT_TRY(const Place place, find_block(offset));
  if (length > place.length - (offset - place.begin)) return broken("an object is past its block");
  WEFT_TRY(const auto block, direct_block(place));
  return block.subspan(offset - place.begin, length);
}

// The first two rows have blocks of equal size. Those of each further row are twice as large.
std::uint64_t Hdf5Heap::row_bytes(std::uint64_t row) const {
  if (row < 2) return start_;
  return row - 1 < 40 && start_ <= kHeapBlockMax >> (row - 1) ? start_ << (row - 1) : 0;
}

Result<Hdf5Heap::Place> Hdf5Heap::find_block(std::uint64_t offset) {
  if (root_rows_ == 0) {
    if (offset >= start_) return broken("an object is past the heap");
    return Place{root_, 0, start_};
  }
  std::uint64_t block = root_, rows = root_rows_, begin = 0;
  for (std::size_t depth = 0; depth < limits::kHdf5DepthMax; ++depth) {
    std::uint64_t row = 0;
    while (row < rows && row_bytes(row) != 0 && offset - begin >= width_ * row_bytes(row))
      begin += width_ * row_bytes(row++);
    const std::uint64_t bytes = row_bytes(row);
    if (row >= rows || bytes == 0) return broken("an object is past the heap");
    const std::uint64_t column = (offset - begin) / bytes;
    begin += column * bytes;
    WEFT_TRY(const std::uint64_t next, child(block, rows, row * width_ + column));
    if (bytes <= direct_max_) return Place{next, begin, bytes};
    if (bytes < start_ * width_) return broken("its sizes contradict one another");
    block = next;
    rows = static_cast<std::uint64_t>(std::bit_width(bytes / (start_ * width_)));
  }
  return broken("its blocks are nested too deeply");
}

Result<std::uint64_t> Hdf5Heap::child(std::uint64_t block, std::uint64_t rows, std::uint64_t entry) {
  const std::size_t address_bytes = file_.widths().address;
  const std::uint64_t head = kHeapIndirectHead + address_bytes + offset_bytes_;
  auto known = blocks_.find(block);
  if (known == blocks_.end()) {
    WEFT_TRY(Hdf5Block bytes, file_.block(kHeapBlock, block, head + rows * width_ * address_bytes + kHeapSum));
    WEFT_CHECK(Hdf5File::check_signature(kHeapBlock, block, bytes, "FHIB"));
    WEFT_CHECK(file_.check_sum(kHeapBlock, block, bytes));
    known = blocks_.emplace(block, std::move(bytes)).first;
  }
  Hdf5Fields fields = file_.fields(known->second);
  fields.skip(head + entry * address_bytes);
  const std::uint64_t address = fields.address();
  if (fields.ended()) return hdf5_short(kHeapBlock, block);
  return address;
}

// The checksum of a direct block is in its head, and counts as zeros.
Result<std::span<const std::byte>> Hdf5Heap::direct_block(const Place& place) {
  auto known = blocks_.find(place.block);
  if (known == blocks_.end()) {
    WEFT_TRY(Hdf5Block bytes, file_.block(kHeapBlock, place.block, place.length));
    WEFT_CHECK(Hdf5File::check_signature(kHeapBlock, place.block, bytes, "FHDB"));
    if (checked_) {
      Hdf5Fields fields = file_.fields(bytes);
      fields.skip(kHeapIndirectHead + file_.widths().address + offset_bytes_);
      const std::size_t at = fields.position();
      const auto expected = static_cast<std::uint32_t>(fields.number(kHeapSum));
      if (fields.ended()) return hdf5_short(kHeapBlock, place.block);
      Hdf5Block zeroed = bytes;
      std::fill_n(zeroed.begin() + static_cast<std::ptrdiff_t>(at), kHeapSum, std::byte{0});
      WEFT_CHECK(file_.compare_sum(kHeapBlock, place.block, expected, hdf5_checksum(zeroed)));
    }
    known = blocks_.emplace(place.block, std::move(bytes)).first;
  }
  if (known->second.size() < place.length) return hdf5_short(kHeapBlock, place.block);
  return std::span<const std::byte>(known->second).first(static_cast<std::size_t>(place.length));
}

}  // namespace weft
