// Hostile and damaged bytes as manifests.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "testing.h"
#include "unit/model/models.h"

namespace weft {
namespace {

using testing::as_bytes;

std::vector<std::byte> sample() {
  Manifest manifest = testing::bert(1);
  manifest.files[1].metadata = {{"format", "pt"}};
  manifest.files.push_back(testing::file_of("x.npy", {{"x", DType::npy_other, {3}, "{'descr': '>f8'}"}}, "npy"));
  return encode_manifest(manifest).value();
}

// Checks that the bytes are refused as corrupt with a message of one line, or that they are a valid manifest.
void check_survives(std::span<const std::byte> bytes) {
  auto manifest = decode_manifest(bytes);
  if (!manifest.ok()) {
    REQUIRE(manifest.error().code == Errc::corrupt);
    REQUIRE(manifest.error().message.find('\n') == std::string::npos);
    return;
  }
  auto again = encode_manifest(manifest.value());
  REQUIRE(again.ok());
  REQUIRE(decode_manifest(again.value()).value() == manifest.value());
}

TEST_CASE("bytes that are no manifest are refused") {
  for (std::string_view text : {"", "WFM9", "\x08\0\0\0WFM9", "not a manifest at all, but long enough to be one"}) {
    auto manifest = decode_manifest(as_bytes(text));
    REQUIRE_FALSE(manifest.ok());
    CHECK(manifest.error().code == Errc::corrupt);
  }
  auto other = sample();
  other[7] = std::byte{'1'};  // last byte of the file identifier
  CHECK_FALSE(decode_manifest(other).ok());
}

TEST_CASE("a manifest cut at any byte is refused or whole") {
  auto bytes = sample();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    check_survives(cut);
  }
}

TEST_CASE("every flipped bit is refused, or gives a manifest that keeps the promises") {
  auto bytes = sample();
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    CAPTURE(bit);
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    check_survives(bytes);
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST_CASE("so does random damage") {
  std::uint64_t seed = testing::test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  std::mt19937_64 random(seed);
  const auto good = sample();
  for (int round = 0; round < 3000; ++round) {
    auto bytes = good;
    for (std::uint64_t n = 1 + random() % 8; n > 0; --n)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(bytes.size() - random() % 2 * (random() % bytes.size()));
    check_survives(bytes);
  }
}

// A FlatBuffer built by hand. Numbers are appended; a forward offset is set once its target is reached.
class RawBuffer {
 public:
  std::size_t u32(std::uint32_t value) { return number(value, 4); }
  std::size_t u16(std::uint32_t value) { return number(value, 2); }
  void text(std::string_view text) {
    for (std::byte byte : as_bytes(text)) bytes_.push_back(byte);
  }
  void align() { bytes_.resize((bytes_.size() + 3) / 4 * 4); }
  void point_here(std::size_t field) {
    for (std::size_t i = 0; i < 4; ++i) bytes_[field + i] = static_cast<std::byte>((bytes_.size() - field) >> (8 * i));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::size_t number(std::uint32_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return bytes_.size() - size;
  }
  std::vector<std::byte> bytes_;
};

// A manifest with one file, in which all `uses` tensors are one table. Its name has `name_bytes` bytes.
std::vector<std::byte> repeated_tensor(std::uint32_t uses, std::uint32_t name_bytes) {
  RawBuffer raw;
  std::size_t root = raw.u32(0);
  raw.text("WFM9");
  for (std::uint32_t word : {6, 8, 4, 0}) raw.u16(word);  // vtable: its size, table size, files at 4; padding
  raw.point_here(root);
  raw.u32(8);
  std::size_t files = raw.u32(0);
  raw.point_here(files);
  raw.u32(1);
  std::size_t file = raw.u32(0);
  for (std::uint32_t word : {14, 12, 4, 0, 0, 0, 8, 0}) raw.u16(word);  // path at 4, tensors at 8
  raw.point_here(file);
  raw.u32(16);
  std::size_t path = raw.u32(0), tensors = raw.u32(0);
  raw.point_here(path);
  raw.u32(1);
  raw.text(std::string_view("a\0\0\0", 4));
  raw.point_here(tensors);
  raw.u32(uses);
  std::vector<std::size_t> uses_at;
  for (std::uint32_t i = 0; i < uses; ++i) uses_at.push_back(raw.u32(0));
  for (std::uint32_t word : {6, 8, 4, 0}) raw.u16(word);  // name at 4
  for (std::size_t use : uses_at) raw.point_here(use);
  raw.u32(8);
  std::size_t name = raw.u32(0);
  raw.point_here(name);
  raw.u32(name_bytes);
  raw.text(std::string(name_bytes, 'n') + '\0');
  raw.align();
  return raw.take();
}

TEST_CASE("a small buffer with many references to one table is refused") {
  auto one = decode_manifest(repeated_tensor(1, 4000));
  REQUIRE_FALSE(one.ok());
  CHECK(one.error().message.find("unknown element type") != std::string::npos);  // decoded, then refused
  auto names = decode_manifest(repeated_tensor(400, 4000));
  REQUIRE_FALSE(names.ok());
  CHECK(names.error().message.find("says more than it holds") != std::string::npos);
  auto tables = decode_manifest(repeated_tensor(100'000, 8));
  REQUIRE_FALSE(tables.ok());
  CHECK(tables.error().message.find("does not verify") != std::string::npos);
}

}  // namespace
}  // namespace weft
