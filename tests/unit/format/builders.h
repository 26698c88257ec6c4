// Files of each format, well-formed or not, as strings of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "testing.h"
#include "weft/content.h"
#include "weft/format.h"

namespace weft::testing {

std::string little_endian(std::uint64_t value, unsigned bytes);
inline std::string le16(std::uint64_t value) {
  return little_endian(value, 2);
}
inline std::string le32(std::uint64_t value) {
  return little_endian(value, 4);
}
inline std::string le64(std::uint64_t value) {
  return little_endian(value, 8);
}

// Length, header text as it is, data.
std::string safetensors_raw(std::string_view header, std::string_view data = "");
// {"dtype":…,"shape":…,"data_offsets":…}
std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets);

// Writes what it is told, also nonsense. Numbers of value and element types are the format's own.
class GgufBuilder {
 public:
  explicit GgufBuilder(std::uint32_t version = 3) : version_(version) {}
  GgufBuilder& key(std::string_view name, std::uint32_t type, std::string_view value);
  GgufBuilder& text(std::string_view name, std::string_view value);
  GgufBuilder& alignment(std::uint32_t value);
  // Dimensions in the file's order: fastest first.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                      std::uint64_t offset);
  GgufBuilder& tensor_count(std::uint64_t count) { return tensors_ = count, *this; }
  GgufBuilder& key_count(std::uint64_t count) { return keys_ = count, *this; }
  GgufBuilder& magic(std::string_view bytes) { return magic_ = bytes, *this; }

  std::string header() const;  // up to the padding
  // Padded to `alignment`, then the data.
  std::string file(std::string_view data, std::uint64_t alignment = 32) const;

 private:
  std::string magic_ = "GGUF";
  std::uint32_t version_;
  std::uint64_t tensors_ = 0;
  std::uint64_t keys_ = 0;
  std::string metadata_;
  std::string infos_;
};
std::string gguf_text(std::string_view text);  // length and bytes

std::string npy_raw(std::string_view header, std::string_view data = "", unsigned major = 1);
// A header as numpy writes it; `descr` with its quotes, `shape` with its parentheses.
std::string npy_dict(std::string_view descr, std::string_view shape, bool fortran_order = false);

// parse_file with "dir/NAME" as the place. good() fails the test when the file is refused, bad() when it is not; bad()
// also checks that the message is one line that begins with the place.
Layout good(std::string_view file_name, std::string_view file);
Error bad(std::string_view file_name, std::string_view file);
// Is `part` in the message?
bool says(const Error& error, std::string_view part);

// The one part of a tensor of a single file; a tensor of no bytes has none.
Range range_of(const FoundTensor& tensor);

// What weft/format.h promises of every Layout, and what holds of files that have none beside them.
void check_layout(const Layout& layout, std::uint64_t file_size);

}  // namespace weft::testing
