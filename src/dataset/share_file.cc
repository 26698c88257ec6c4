#include "dataset/share_file.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "weft/dtype.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

constexpr std::uint64_t kNumberBytes = sizeof(std::uint64_t);

std::string header_of(std::uint64_t rows) {
  return npy_header(DType::u64, std::span(&rows, 1), "");
}

// Fills `out` from `offset` of `header` ‖ number 0 ‖ number 1 ‖ …, each 8 bytes, little-endian. `fill(first, numbers)`
// writes the numbers from index `first` on.
template <class Fill>
void read_numbers(const std::string& header, std::uint64_t offset, std::span<std::byte> out, const Fill& fill) {
  if (offset < header.size()) {
    const std::size_t count = std::min<std::uint64_t>(out.size(), header.size() - offset);
    std::memcpy(out.data(), header.data() + offset, count);
    out = out.subspan(count);
    offset += count;
  }
  if (out.empty()) return;
  const std::uint64_t at = offset - header.size();
  const std::uint64_t first = at / kNumberBytes;
  std::vector<std::uint64_t> numbers((at + out.size() + kNumberBytes - 1) / kNumberBytes - first);
  fill(first, std::span(numbers));
  std::memcpy(out.data(), std::as_bytes(std::span(numbers)).data() + at % kNumberBytes, out.size());
}

}  // namespace

MadeFile make_share_file(const RowShares& shares, const ShareName& name) {
  MadeFile out;
  if (!name.seed) {
    const auto [first, end] = shares.part(*name.parts, *name.rank);
    std::string header = header_of(end - first);
    out.size = header.size() + (end - first) * kNumberBytes;
    out.read = [header = std::move(header), first_row = first](std::uint64_t offset, std::span<std::byte> to) {
      read_numbers(header, offset, to, [first_row](std::uint64_t begin, std::span<std::uint64_t> numbers) {
        std::iota(numbers.begin(), numbers.end(), first_row + begin);
      });
    };
    return out;
  }
  const auto order = std::make_shared<const RowOrder>(shares.order(*name.seed, *name.parts, *name.rank));
  std::string header = header_of(order->size());
  out.size = header.size() + order->size() * kNumberBytes;
  out.memory_bytes = order->memory_bytes();
  out.read = [header = std::move(header), order](std::uint64_t offset, std::span<std::byte> to) {
    read_numbers(header, offset, to,
                 [&order](std::uint64_t begin, std::span<std::uint64_t> numbers) { order->read(begin, numbers); });
  };
  return out;
}

}  // namespace weft
