#include "unit/format/hdf5_files.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "builders.h"
#include "testing.h"
#include "weft/model/manifest.h"

namespace weft::testing {

std::string hdf5_sample(std::string_view name) {
  return read_text(std::string(WEFT_SOURCE_DIR "/tests/fuzz/corpus/hdf5/").append(name));
}

constexpr std::uint64_t kBytesReadSpare = 4096, kBytesReadPerByte = 4;  // by a reader of any file

std::vector<std::string> hdf5_sample_names() {
  return {"tensors",      "tensors_latest", "hidden",      "hidden_latest", "chunks",    "chunks_latest",
          "pages_latest", "many",           "many_latest", "many_tracked",  "user_block"};
}

Layout hdf5_layout(std::string_view file) {
  MemorySource source(file);
  auto layout = parse_file("dir/m.h5", "m.h5", source);
  if (!layout.ok()) FAIL(layout.error().message);
  CHECK(source.bytes_read() <= kBytesReadSpare + kBytesReadPerByte * file.size());  // whatever loops the file has
  for (const FoundTensor& tensor : layout->tensors)
    for (const TensorPart& part : tensor.parts)
      CHECK((part.file == 0 && part.offset <= file.size() && part.length <= file.size() - part.offset));
  for (const TensorPart& cut : layout->cuts)
    CHECK((cut.file == 0 && cut.length > 0 && cut.offset <= file.size() && cut.length <= file.size() - cut.offset));
  return *std::move(layout);
}

std::string hdf5_opaque(std::string_view file) {
  const Layout layout = hdf5_layout(file);
  CHECK(layout.format.empty());
  CHECK(layout.tensors.empty());
  REQUIRE(layout.metadata.size() == 1);
  CHECK(layout.metadata[0].first == kNoTensors);
  CHECK(layout.metadata[0].second.find('\n') == std::string::npos);
  return layout.metadata[0].second;
}

const FoundTensor* hdf5_tensor(const Layout& layout, std::string_view name) {
  const auto found = std::ranges::find(layout.tensors, name, &FoundTensor::name);
  return found == layout.tensors.end() ? nullptr : &*found;
}

std::string hdf5_hidden_why(const Layout& layout, std::string_view name) {
  const auto found = std::ranges::find(layout.hidden, name, &HiddenTensor::name);
  return found == layout.hidden.end() ? "" : found->why;
}

std::string hdf5_bytes(const FoundTensor& tensor, std::string_view file) {
  std::string bytes;
  for (const TensorPart& part : tensor.parts) bytes += file.substr(part.offset, part.length);
  return bytes;
}

std::string h5_message(unsigned type, const std::string& body, unsigned flags) {
  return le16(type) + le16(body.size()) + little_endian(flags, 4) + body;
}

std::string h5_header(const std::vector<std::string>& messages) {
  std::string all;
  for (const std::string& message : messages) all += message;
  return le16(1) + le16(messages.size()) + le32(1) + le32(all.size()) + le32(0) + all;
}

std::string h5_link(std::string_view name, std::uint64_t header) {
  return h5_message(6, le16(1) + little_endian(name.size(), 1) + std::string(name) + le64(header));
}

std::string h5_space(const std::vector<std::uint64_t>& shape) {
  std::string body = "\1" + little_endian(shape.size(), 1) + std::string(6, '\0');
  for (const std::uint64_t dimension : shape) body += le64(dimension);
  return h5_message(1, body);
}

std::string h5_float_type() {
  const std::string places("\x17\x08\0\x17", 4);  // of exponent and mantissa, and their bits
  return h5_message(3, "\x11" + little_endian(0x1f20, 3) + le32(4) + le16(0) + le16(32) + places + le32(127));
}

std::string h5_contiguous(std::uint64_t at, std::uint64_t length) {
  return h5_message(8, "\3\1" + le64(at) + le64(length));
}

std::string h5_chunked(std::uint64_t tree, const std::vector<std::uint64_t>& dimensions) {
  std::string body = "\3\2" + little_endian(dimensions.size(), 1) + le64(tree);
  for (const std::uint64_t dimension : dimensions) body += le32(dimension);
  return h5_message(8, body);
}

H5File::H5File() : bytes_(kSize, '\0') {
  const std::string undefined(8, '\xff');
  put(0, "\x89HDF\r\n\x1a\n" + le32(0) + std::string("\0\x08\x08\0", 4) + le16(4) + le16(16) + le32(0) + le64(0) +
             undefined + le64(kSize) + undefined + le64(0) + le64(kRoot));
}

H5File& H5File::put(std::uint64_t at, std::string_view bytes) {
  bytes_.replace(at, bytes.size(), bytes);
  return *this;
}

H5File& H5File::dataset(const std::vector<std::string>& messages) {
  put(kRoot, h5_header({h5_link("w", kDataset)}));
  return put(kDataset, h5_header(messages));
}

}  // namespace weft::testing
