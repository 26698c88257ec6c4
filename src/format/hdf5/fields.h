// The fields of one block of an HDF5 file, front to back (header only).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace weft {

// An address of HDF5 that has all bits set.
inline constexpr std::uint64_t kHdf5Undefined = std::numeric_limits<std::uint64_t>::max();

// The bytes that addresses and lengths take in one file: 2, 4 or 8.
struct Hdf5Widths {
  std::size_t address = 8;
  std::size_t length = 8;
};

// A field past the end of the block is 0 or empty, and so are all later fields. ended() is true from then on, so a
// caller checks it once, behind the last field.
class Hdf5Fields {
 public:
  Hdf5Fields(std::span<const std::byte> block, Hdf5Widths widths) : block_(block), widths_(widths) {}

  bool ended() const { return ended_; }
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return block_.size() - position_; }
  Hdf5Widths widths() const { return widths_; }

  std::span<const std::byte> bytes(std::uint64_t count) {
    if (count > remaining()) ended_ = true;
    if (ended_) return {};
    const auto out = block_.subspan(position_, static_cast<std::size_t>(count));
    position_ += out.size();
    return out;
  }
  std::string_view text(std::uint64_t count) {
    const auto out = bytes(count);
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  }
  void skip(std::uint64_t count) { static_cast<void>(bytes(count)); }
  // Decodes a little-endian number of 0 to 8 bytes.
  std::uint64_t number(std::size_t count) {
    const auto field = bytes(count);
    std::uint64_t value = 0;
    for (std::size_t i = field.size(); i-- > 0;) value = (value << 8U) | std::to_integer<std::uint64_t>(field[i]);
    return value;
  }
  std::uint64_t address() {
    const auto field = bytes(widths_.address);
    if (std::ranges::all_of(field, [](std::byte one) { return one == std::byte{0xff}; })) return kHdf5Undefined;
    return Hdf5Fields(field, widths_).number(field.size());
  }
  std::uint64_t length() { return number(widths_.length); }
  // Returns the same block from here to its end, or its next `count` bytes.
  Hdf5Fields rest() const { return {block_.subspan(position_), widths_}; }
  Hdf5Fields part(std::uint64_t count) { return {bytes(count), widths_}; }

 private:
  std::span<const std::byte> block_;
  Hdf5Widths widths_;
  std::size_t position_ = 0;
  bool ended_ = false;
};

// Returns the bytes that HDF5 takes for numbers up to `most`.
constexpr std::size_t hdf5_width(std::uint64_t most) {
  std::size_t bytes = 1;
  while (bytes < 8 && most >> (8 * bytes) != 0) ++bytes;
  return bytes;
}

}  // namespace weft
