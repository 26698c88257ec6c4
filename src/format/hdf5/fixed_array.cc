#include "format/hdf5/fixed_array.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace weft {
namespace {

constexpr std::string_view kArrayHeader = "fixed array";
constexpr std::string_view kArrayBlock = "fixed array block";
constexpr std::uint64_t kArraySum = 4;
constexpr std::uint64_t kPageBitsMax = 32;

class Hdf5FixedArray {
 public:
  using Entry = std::function<Status(const Hdf5ArrayEntry&)>;
  Hdf5FixedArray(Hdf5File& file, std::uint64_t chunk_bytes, const Entry& entry)
      : file_(file), chunk_bytes_(chunk_bytes), entry_(entry) {}

  Status read(std::uint64_t header, std::uint64_t total);

 private:
  Status read_block();
  Status read_pages(std::uint64_t at, std::span<const std::byte> written);
  Status add_entries(Hdf5Fields fields, std::uint64_t first, std::uint64_t count);

  Hdf5File& file_;
  const std::uint64_t chunk_bytes_;
  const Entry& entry_;
  bool filtered_ = false;
  std::uint64_t entry_bytes_ = 0, page_bits_ = 0, total_ = 0, block_ = kHdf5Undefined;
};

Status Hdf5FixedArray::read(std::uint64_t header, std::uint64_t total) {
  const Hdf5Widths widths = file_.widths();
  WEFT_TRY(const Hdf5Block bytes, file_.block(kArrayHeader, header, 8 + widths.length + widths.address + kArraySum));
  WEFT_CHECK(Hdf5File::check_signature(kArrayHeader, header, bytes, "FAHD"));
  WEFT_CHECK(file_.check_sum(kArrayHeader, header, bytes));
  Hdf5Fields fields = file_.fields(bytes);
  fields.skip(5);
  filtered_ = fields.number(1) != 0;
  entry_bytes_ = fields.number(1);
  page_bits_ = fields.number(1);
  total_ = fields.length();
  block_ = fields.address();
  const std::uint64_t least = widths.address + (filtered_ ? 4 + 1 : 0), most = least + (filtered_ ? 7 : 0);
  if (total_ != total || entry_bytes_ < least || entry_bytes_ > most || page_bits_ > kPageBitsMax)
    return hdf5_error(fmt::format("{} at {}: its sizes contradict one another", kArrayHeader, header));
  return block_ == kHdf5Undefined ? Status{} : read_block();
}

// A large array is in pages, each with a checksum. A bit says of each page whether it was written.
Status Hdf5FixedArray::read_block() {
  const std::uint64_t head_bytes = 6 + file_.widths().address, page = 1ULL << page_bits_;
  const std::uint64_t pages = total_ / page + (total_ % page != 0 ? 1 : 0);
  const bool paged = total_ > page;
  const std::uint64_t body = paged ? (pages + 7) / 8 : total_ * entry_bytes_;
  WEFT_TRY(const Hdf5Block bytes, file_.block(kArrayBlock, block_, head_bytes + body + kArraySum));
  WEFT_CHECK(Hdf5File::check_signature(kArrayBlock, block_, bytes, "FADB"));
  WEFT_CHECK(file_.check_sum(kArrayBlock, block_, bytes));
  Hdf5Fields fields = file_.fields(bytes);
  fields.skip(head_bytes);
  return paged ? read_pages(block_ + bytes.size(), fields.bytes(body)) : add_entries(fields, 0, total_);
}

Status Hdf5FixedArray::read_pages(std::uint64_t at, std::span<const std::byte> written) {
  const std::uint64_t page = 1ULL << page_bits_;
  for (std::uint64_t first = 0, i = 0; first < total_; first += page, ++i) {
    const std::uint64_t count = std::min(page, total_ - first), bytes = count * entry_bytes_ + kArraySum;
    if ((std::to_integer<unsigned>(written[i / 8]) >> (7 - i % 8) & 1U) != 0) {
      WEFT_TRY(const Hdf5Block one, file_.block(kArrayBlock, at, bytes));
      WEFT_CHECK(file_.check_sum(kArrayBlock, at, one));
      WEFT_CHECK(add_entries(file_.fields(one), first, count));
    }
    at += bytes;
  }
  return {};
}

Status Hdf5FixedArray::add_entries(Hdf5Fields fields, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    Hdf5ArrayEntry one{first + i, fields.address(), chunk_bytes_, 0};
    if (filtered_) {
      one.bytes = fields.number(entry_bytes_ - file_.widths().address - 4);
      one.filters_skipped = fields.number(4);
    }
    WEFT_CHECK(entry_(one));
  }
  return {};
}

}  // namespace

Status read_fixed_array(Hdf5File& file, std::uint64_t header, std::uint64_t total, std::uint64_t chunk_bytes,
                        const std::function<Status(const Hdf5ArrayEntry&)>& entry) {
  return header == kHdf5Undefined ? Status{} : Hdf5FixedArray(file, chunk_bytes, entry).read(header, total);
}

}  // namespace weft
