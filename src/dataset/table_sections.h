// Writes the sections of a table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

class Sections {
 public:
  explicit Sections(std::uint64_t bytes) : bytes_(bytes) {}

  void go_to(std::uint64_t at) { at_ = at; }  // starts the next section at this offset
  void add(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ += bytes.size();
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  template <class T>
  void add_number(T number) {  // also a struct of numbers, without padding
    add(std::as_bytes(std::span(&number, 1)));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t at_ = 0;
};

}  // namespace weft
