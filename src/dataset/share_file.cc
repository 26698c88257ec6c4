#include "dataset/share_file.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/dtype.h"
#include "weft/tree.h"

namespace weft {
namespace {

constexpr std::uint64_t kNumberBytes = sizeof(std::uint64_t);

std::string header_of(std::uint64_t rows) {
  return npy_header(DType::u64, std::span(&rows, 1), "");
}

// Fills `out` from `offset` of `header` ‖ number 0 ‖ number 1 ‖ …, each 8 bytes, little-endian.
template <class Number>
void read_numbers(const std::string& header, std::uint64_t offset, std::span<std::byte> out, const Number& number) {
  if (offset < header.size()) {
    const std::size_t count = std::min<std::uint64_t>(out.size(), header.size() - offset);
    std::memcpy(out.data(), header.data() + offset, count);
    out = out.subspan(count);
    offset += count;
  }
  while (!out.empty()) {
    const std::uint64_t at = offset - header.size();
    const std::uint64_t value = number(at / kNumberBytes);
    const std::uint64_t skip = at % kNumberBytes;
    const std::size_t count = std::min<std::uint64_t>(out.size(), kNumberBytes - skip);
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&value) + skip, count);
    out = out.subspan(count);
    offset += count;
  }
}

}  // namespace

MadeFile make_share_file(const RowShares& shares, const ShareName& name) {
  MadeFile out;
  if (!name.seed) {
    const auto [first, end] = shares.part(*name.parts, *name.rank);
    std::string header = header_of(end - first);
    out.size = header.size() + (end - first) * kNumberBytes;
    out.read = [header = std::move(header), first = first](std::uint64_t offset, std::span<std::byte> to) {
      read_numbers(header, offset, to, [first](std::uint64_t i) { return first + i; });
    };
    return out;
  }
  const auto rows =
      std::make_shared<const std::vector<std::uint64_t>>(shares.order(*name.seed, *name.parts, *name.rank));
  std::string header = header_of(rows->size());
  out.size = header.size() + rows->size() * kNumberBytes;
  out.memory_bytes = rows->capacity() * kNumberBytes;
  out.read = [header = std::move(header), rows](std::uint64_t offset, std::span<std::byte> to) {
    read_numbers(header, offset, to, [&rows](std::uint64_t i) { return (*rows)[i]; });
  };
  return out;
}

}  // namespace weft
