// Builds files of each format, well-formed or malformed, as strings of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "testing.h"
#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/model/manifest.h"

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

// Returns the length, the header text as given, and the data.
std::string safetensors_raw(std::string_view header, std::string_view data = "");
// {"dtype":…,"shape":…,"data_offsets":…}
std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets);

// Writes a GGUF file from whatever it is given, valid or not. Value and element types are the format's own numbers.
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

  std::string header() const;  // without the padding
  // Returns the header, padded to `alignment`, and the data.
  std::string file(std::string_view data, std::uint64_t alignment = 32) const;

 private:
  std::string magic_ = "GGUF";
  std::uint32_t version_;
  std::uint64_t tensors_ = 0;
  std::uint64_t keys_ = 0;
  std::string metadata_;
  std::string infos_;
};
std::string gguf_text(std::string_view text);  // length, then bytes

std::string npy_raw(std::string_view header, std::string_view data = "", unsigned major = 1);
// Returns a header as numpy writes it, with `descr` in quotes and `shape` in parentheses.
std::string npy_dict(std::string_view descr, std::string_view shape, bool fortran_order = false);

// A member of a zip archive. Its local header and its entry in the directory have its numbers, unless others are set.
struct ZipPart {
  std::string name;
  std::string data;
  unsigned method = 0;  // 8: deflated
  unsigned flags = 0;
  std::string local_name = {};     // empty: as `name`
  unsigned local_method = 0xffff;  // 0xffff: as `method`
  std::string local_extra = {}, extra = {};
  std::uint32_t local_packed = 0xfffffffe, local_size = 0xfffffffe;  // 0xfffffffe: the bytes of `data`
  std::uint32_t packed = 0xfffffffe, size = 0xfffffffe;              // the same, in the directory
  std::uint32_t header = 0xfffffffe;                                 // 0xfffffffe: where the local header is
};
std::string zip_members(const std::vector<ZipPart>& parts);  // local headers and bytes
// Returns the directory of members that lie at the start of the archive.
std::string zip_entries(const std::vector<ZipPart>& parts);
std::string zip_end(std::uint64_t count, std::uint64_t directory_bytes, std::uint64_t directory,
                    std::string_view comment = "");
// Returns the end of a zip64 archive: its record, which lies at `at`, the place of the record, and the end record.
std::string zip64_end(std::uint64_t count, std::uint64_t directory_bytes, std::uint64_t directory, std::uint64_t at);
std::string zip_file(const std::vector<ZipPart>& parts, std::string_view comment = "");

// These call parse_file with "dir/NAME" as the place. good() fails the test if the file is refused, bad() if it is
// accepted. bad() also checks that the message is one line that begins with the place, and kept() that the file is
// opaque and has a reason, which it returns as the message of an error.
Layout good(std::string_view file_name, std::string_view file);
Error bad(std::string_view file_name, std::string_view file);
Error kept(std::string_view file_name, std::string_view file);
// True if the message contains `part`.
bool says(const Error& error, std::string_view part);

// Returns the range of a tensor in a single file. A tensor without bytes has none.
Range range_of(const FoundTensor& tensor);

// Checks the guarantees of weft/model/format.h for every Layout, and those for a single file.
void check_layout(const Layout& layout, std::uint64_t file_size);

}  // namespace weft::testing
