#include "builders.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "weft/content.h"

namespace weft::testing {

std::string little_endian(std::uint64_t value, unsigned bytes) {
  std::string out;
  for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8U * i));
  return out;
}

std::string safetensors_raw(std::string_view header, std::string_view data) {
  return le64(header.size()) + std::string(header) + std::string(data);
}

std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"dtype":"{}","shape":{},"data_offsets":{}}})", dtype, shape, offsets);
}

std::string gguf_text(std::string_view text) {
  return le64(text.size()) + std::string(text);
}

GgufBuilder& GgufBuilder::key(std::string_view name, std::uint32_t type, std::string_view value) {
  metadata_ += gguf_text(name) + le32(type) + std::string(value);
  ++keys_;
  return *this;
}

GgufBuilder& GgufBuilder::text(std::string_view name, std::string_view value) {
  return key(name, 8, gguf_text(value));
}

GgufBuilder& GgufBuilder::alignment(std::uint32_t value) {
  return key("general.alignment", 4, le32(value));
}

GgufBuilder& GgufBuilder::tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                                 std::uint32_t type, std::uint64_t offset) {
  infos_ += gguf_text(name) + le32(dimensions.size());
  for (std::uint64_t dimension : dimensions) infos_ += le64(dimension);
  infos_ += le32(type) + le64(offset);
  ++tensors_;
  return *this;
}

std::string GgufBuilder::header() const {
  return magic_ + le32(version_) + le64(tensors_) + le64(keys_) + metadata_ + infos_;
}

std::string GgufBuilder::file(std::string_view data, std::uint64_t alignment) const {
  std::string out = header();
  while (out.size() % alignment != 0) out += '\0';
  return out += data;
}

std::string npy_raw(std::string_view header, std::string_view data, unsigned major) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(major);
  out += '\0';
  out += major == 1 ? le16(header.size()) : le32(header.size());
  return out + std::string(header) + std::string(data);
}

std::string npy_dict(std::string_view descr, std::string_view shape, bool fortran_order) {
  return fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}\n", descr, fortran_order ? "True" : "False",
                     shape);
}

namespace {
std::uint32_t or_bytes(std::uint32_t value, const ZipPart& part) {
  return value == 0xfffffffe ? static_cast<std::uint32_t>(part.data.size()) : value;
}

std::string zip_member(const ZipPart& part) {
  const std::string& name = part.local_name.empty() ? part.name : part.local_name;
  return "PK\3\4" + le16(20) + le16(part.flags) + le16(part.local_method == 0xffff ? part.method : part.local_method) +
         le32(0) + le32(0) + le32(or_bytes(part.local_packed, part)) + le32(or_bytes(part.local_size, part)) +
         le16(name.size()) + le16(part.local_extra.size()) + name + part.local_extra + part.data;
}
}  // namespace

std::string zip_members(const std::vector<ZipPart>& parts) {
  std::string out;
  for (const ZipPart& part : parts) out += zip_member(part);
  return out;
}

std::string zip_entries(const std::vector<ZipPart>& parts) {
  std::string out;
  std::uint64_t at = 0;
  for (const ZipPart& part : parts) {
    out += "PK\1\2" + le16(20) + le16(20) + le16(part.flags) + le16(part.method) + le32(0) + le32(0) +
           le32(or_bytes(part.packed, part)) + le32(or_bytes(part.size, part)) + le16(part.name.size()) +
           le16(part.extra.size()) + le16(0) + le16(0) + le16(0) + le32(0) +
           le32(part.header == 0xfffffffe ? at : part.header) + part.name + part.extra;
    at += zip_member(part).size();
  }
  return out;
}

std::string zip_end(std::uint64_t count, std::uint64_t directory_bytes, std::uint64_t directory,
                    std::string_view comment) {
  return "PK\5\6" + le16(0) + le16(0) + le16(count) + le16(count) + le32(directory_bytes) + le32(directory) +
         le16(comment.size()) + std::string(comment);
}

std::string zip64_end(std::uint64_t count, std::uint64_t directory_bytes, std::uint64_t directory, std::uint64_t at) {
  return "PK\6\6" + le64(44) + le16(45) + le16(45) + le32(0) + le32(0) + le64(count) + le64(count) +
         le64(directory_bytes) + le64(directory) + "PK\6\7" + le32(0) + le64(at) + le32(1) +
         zip_end(0xffff, UINT32_MAX, UINT32_MAX);
}

std::string zip_file(const std::vector<ZipPart>& parts, std::string_view comment) {
  const std::string members = zip_members(parts), entries = zip_entries(parts);
  return members + entries + zip_end(parts.size(), entries.size(), members.size(), comment);
}

namespace {
std::string place(std::string_view file_name) {
  return "dir/" + std::string(file_name);
}
}  // namespace

Layout good(std::string_view file_name, std::string_view file) {
  MemorySource source(file);
  auto layout = parse_file(place(file_name), file_name, source);
  INFO("file: ", std::string(file_name));
  if (!layout.ok()) FAIL(layout.error().message);
  check_layout(*layout, file.size());
  return std::move(*layout);
}

Error bad(std::string_view file_name, std::string_view file) {
  MemorySource source(file);
  auto layout = parse_file(place(file_name), file_name, source);
  INFO("file: ", std::string(file_name));
  if (layout.ok()) FAIL("a malformed file was parsed");
  Error error = layout.error();
  INFO("message: ", error.message);
  CHECK(error.message.starts_with(place(file_name) + ": "));
  CHECK(error.message.find('\n') == std::string::npos);
  CHECK_FALSE(error.message.ends_with('.'));
  return error;
}

Error kept(std::string_view file_name, std::string_view file) {
  const Layout layout = good(file_name, file);
  INFO("file: ", std::string(file_name));
  CHECK(layout.format.empty());
  CHECK(layout.tensors.empty());
  REQUIRE(layout.metadata.size() == 1);
  CHECK(layout.metadata[0].first == kNoTensors);
  CHECK_FALSE(layout.metadata[0].second.empty());
  CHECK(layout.metadata[0].second.find('\n') == std::string::npos);
  return {Errc::unsupported, layout.metadata[0].second};
}

Range range_of(const FoundTensor& tensor) {
  return tensor.parts.empty() ? Range{} : Range{tensor.parts.front().offset, tensor.parts.front().length};
}

bool says(const Error& error, std::string_view part) {
  bool found = error.message.find(part) != std::string::npos;
  if (!found) MESSAGE("the message is: ", error.message);
  return found;
}

void check_layout(const Layout& layout, std::uint64_t file_size) {
  std::uint64_t end = 0;
  CHECK(layout.others.empty());
  for (const FoundTensor& tensor : layout.tensors) {
    const Range range = range_of(tensor);
    if (!tensor.strides.empty())
      CHECK(*strided_bytes(tensor.dtype, tensor.shape, tensor.strides) == range.length);
    else if (tensor.dtype != DType::npy_other)
      CHECK(*tensor_bytes(tensor.dtype, tensor.shape) == range.length);
    if (tensor.parts.empty()) continue;
    CHECK(tensor.parts.size() == 1);
    CHECK(range.offset >= end);
    CHECK(range.offset <= file_size);
    CHECK(range.length <= file_size - range.offset);
    end = range.offset + range.length;
  }
  for (const TensorPart& cut : layout.cuts) {
    CHECK(cut.file == 0);
    CHECK(cut.length > 0);
    CHECK(cut.offset <= file_size);
    CHECK(cut.length <= file_size - cut.offset);
  }
}

}  // namespace weft::testing
