#include "testing.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>

#include <fmt/core.h>

#include "base/json.h"
#include "base/text.h"
#include "os/sys.h"

namespace weft::testing {
void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

TempDir::TempDir() {
  const char* base = std::getenv("WEFT_TEST_TMP");
  if (base == nullptr) base = std::getenv("TMPDIR");
  if (base == nullptr) base = "/tmp";
  path_ = std::string(base) + "/weft-test.XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
}

TempDir::~TempDir() {
  static_cast<void>(remove_tree(path_));
}

MemorySource::MemorySource(std::string_view text) {
  auto bytes = as_bytes(text);
  bytes_.assign(bytes.begin(), bytes.end());
}

Status MemorySource::read(std::uint64_t offset, std::span<std::byte> out) {
  ++reads_;
  bytes_read_ += out.size();
  if (offset > bytes_.size() || out.size() > bytes_.size() - offset)
    return Error{Errc::io, fmt::format("expected {} bytes at {}, got end of file", out.size(), offset)};
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return {};
}

void write_file(const std::string& path, std::string_view text) {
  if (auto slash = path.rfind('/'); slash != std::string::npos && slash > 0)
    must(make_directories(path.substr(0, slash)));
  Fd fd = must(open_file(path, O_WRONLY | O_CREAT | O_TRUNC));
  must(write_exact(fd.get(), 0, as_bytes(text), path));
}

std::string read_text(const std::string& path) {
  auto bytes = must(read_file(path, UINT64_MAX));
  return std::string(as_text(bytes));
}

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint64_t word = random();
    std::memcpy(&bytes[i], &word, 8);
  }
  for (; i < count; ++i) bytes[i] = static_cast<std::byte>(random());
  return bytes;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string safetensors_file(const std::vector<NamedTensor>& tensors, std::string_view metadata_json) {
  JsonWriter json;
  json.begin_object();
  if (!metadata_json.empty()) json.key("__metadata__").raw(metadata_json);
  std::uint64_t offset = 0;
  std::string data;
  for (const NamedTensor& tensor : tensors) {
    json.key(tensor.name).begin_object().member("dtype", std::string_view(tensor.dtype)).key("shape").begin_array();
    for (std::uint64_t dimension : tensor.shape) json.value(dimension);
    json.end_array().key("data_offsets").begin_array().value(offset).value(offset + tensor.bytes.size()).end_array();
    json.end_object();
    offset += tensor.bytes.size();
    data += as_text(tensor.bytes);
  }
  json.end_object();
  std::string header = json.take();
  while (header.size() % 8 != 0) header += ' ';
  std::uint64_t length = header.size();
  std::string file(8, '\0');
  for (unsigned i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8U * i));
  return file + header + data;
}

std::uint64_t test_seed() {
  if (const char* text = std::getenv("WEFT_TEST_SEED")) return parse_u64(text).value_or(1);
  return std::random_device{}();
}

}  // namespace weft::testing
