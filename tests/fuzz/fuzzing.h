// Shared by the fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/model/format.h"
#include "weft/model/records.h"

namespace weft::fuzzing {

// The fuzzer's input as a file. Aborts on a read past its end: parsers must check sizes first.
class Input final : public ByteSource {
 public:
  Input(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) override;

 private:
  std::span<const std::uint8_t> bytes_;
};

// Aborts if `holds` is false.
void require(bool holds, std::string_view promise);
// Aborts unless the error's message is one line that begins with the place.
void require_clear(const Error& error, std::string_view where);
// Aborts unless the layout of a single file has all guarantees of weft/model/format.h. `may_overlap`: the format has
// tensors that share bytes, or that lie in several parts.
void require_sound(const Layout& layout, std::uint64_t file_size, bool may_overlap);
// Scans the input as a container and checks all guarantees of weft/model/records.h. The first byte determines the parts
// in which the rest is fed.
void fuzz_container(const ContainerFormat& format, const std::uint8_t* data, std::size_t size);
// Parses the input as a file of this name and checks all guarantees of weft/model/format.h.
void fuzz_format(std::string_view file_name, const std::uint8_t* data, std::size_t size, bool may_overlap = false);

}  // namespace weft::fuzzing
