// Reads a file's header through one small window, so memory is bounded whatever the header claims.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/model/format.h"

namespace weft {

// Decodes an unsigned little-endian number of sizeof(T) bytes.
template <class T>
T load_le(const std::byte* bytes) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = static_cast<T>((value << 8U) | std::to_integer<T>(bytes[i]));
  return value;
}

// A read past the end is an error, with the position: Errc::invalid if the file ends there, Errc::unsupported if only
// the cursor does. After an error only position() and lacking() are valid.
class HeaderCursor {
 public:
  static constexpr std::uint64_t kWindow = 64U << 10U;
  static constexpr std::uint64_t kJumpWindow = 4U << 10U;  // what is read where the cursor jumped to

  // Reads [0, min(end, source.size())). The source must outlive the cursor.
  HeaderCursor(ByteSource& source, std::uint64_t end);

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return end_ - position_; }
  // Returns the code of an error about `count` further bytes that the caller does not read: Errc::invalid if the file
  // ends before them, Errc::unsupported if it has them.
  Errc lacking(std::uint64_t count) const;

  Status read(std::span<std::byte> out);
  Status skip(std::uint64_t count);
  Status move_to(std::uint64_t position);
  // Returns the next `count` bytes (at most kWindow), or all that remain if they are fewer, and stays where it is. They
  // are valid until the next call.
  Result<std::span<const std::byte>> ahead(std::uint64_t count);
  // Checks `count` against the remaining bytes before it allocates.
  Result<std::string> text(std::uint64_t count);
  template <class T>
  Result<T> number() {
    std::array<std::byte, sizeof(T)> bytes{};
    WEFT_CHECK(read(bytes));
    return load_le<T>(bytes.data());
  }

 private:
  Status need(std::uint64_t count) const;
  Status fill();

  ByteSource& source_;
  std::uint64_t end_;
  std::uint64_t position_ = 0;
  std::uint64_t window_begin_ = 0;  // file offset of window_[0]
  std::uint64_t window_size_ = 0;   // bytes of window_ that are filled
  std::vector<std::byte> window_;
};

}  // namespace weft
