#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "builders.h"
#include "format/hdf5/checksum.h"
#include "format/hdf5/hdf5.h"
#include "hdf5_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

// Returns the bytes of 0, 1, 2, … as numbers of a type.
template <class T>
std::string counted(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(i);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

std::uint64_t cut_bytes(const Layout& layout) {
  std::uint64_t sum = 0;
  for (const TensorPart& cut : layout.cuts) sum += cut.length;
  return sum;
}

}  // namespace

TEST_CASE("hdf5: datasets of each type are tensors, in old and new files") {
  for (const char* sample : {"tensors", "tensors_latest"}) {
    CAPTURE(sample);
    const std::string file = hdf5_sample(sample);
    const Layout layout = hdf5_layout(file);
    CHECK(layout.format == "hdf5");
    CHECK(layout.hidden.empty());
    CHECK(layout.tensors.size() == 19);
    const auto check = [&](const char* name, DType type, const Shape& shape, const std::string& bytes) {
      CAPTURE(name);
      const FoundTensor* tensor = hdf5_tensor(layout, name);
      REQUIRE(tensor != nullptr);
      CHECK(tensor->dtype == type);
      CHECK(tensor->shape == shape);
      CHECK(tensor->strides.empty());
      CHECK(hdf5_bytes(*tensor, file) == bytes);
    };
    check("f4", DType::f32, {2, 3}, counted<float>(6));
    check("f8", DType::f64, {2, 3}, counted<double>(6));
    check("i1", DType::i8, {2, 3}, counted<std::int8_t>(6));
    check("u2", DType::u16, {2, 3}, counted<std::uint16_t>(6));
    check("i4", DType::i32, {2, 3}, counted<std::int32_t>(6));
    check("u8", DType::u64, {2, 3}, counted<std::uint64_t>(6));
    check("bool", DType::boolean, {2, 3}, std::string("\0\1\1\1\1\1", 6));
    check("scalar", DType::f32, {}, le32(0x40600000));
    check("empty", DType::f32, {0, 7}, "");
    check("compact", DType::f32, {3}, counted<float>(3));
    check("layer.sub.weight:0", DType::f32, {4}, counted<float>(4));
    check("tied", DType::f32, {4}, counted<float>(4));
    check("bf16", DType::bf16, {4}, std::string(8, '\0'));
    check("of_named", DType::f32, {2}, le32(0x3f800000) + le32(0x40000000));
    CHECK(hdf5_tensor(layout, "f2")->dtype == DType::f16);
    CHECK(hdf5_tensor(layout, "c8")->dtype == DType::c64);
    CHECK(hdf5_tensor(layout, "c16")->dtype == DType::c128);
    CHECK(hdf5_tensor(layout, "tied")->parts[0].offset == hdf5_tensor(layout, "layer.sub.weight:0")->parts[0].offset);
  }
}

TEST_CASE("hdf5: big-endian numbers keep their bytes and have the dict of numpy") {
  const std::string file = hdf5_sample("tensors");
  const Layout layout = hdf5_layout(file);
  const FoundTensor& tensor = *hdf5_tensor(layout, "big_i2");
  CHECK(tensor.dtype == DType::npy_other);
  CHECK(tensor.descr == "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }");
  CHECK(hdf5_bytes(tensor, file) == std::string("\0\0\0\1\0\2\0\3\0\4\0\5", 12));
}

TEST_CASE("hdf5: what weft does not show is hidden with a reason, and no other file is opened") {
  for (const char* sample : {"hidden", "hidden_latest"}) {
    CAPTURE(sample);
    const Layout layout = hdf5_layout(hdf5_sample(sample));
    REQUIRE(layout.tensors.size() == 1);
    CHECK(layout.tensors[0].name == "plain");
    CHECK(layout.others.empty());
    CHECK(hdf5_hidden_why(layout, "text") == "text");
    CHECK(hdf5_hidden_why(layout, "texts") == "elements of variable length");
    CHECK(hdf5_hidden_why(layout, "compound") == "a compound type");
    CHECK(hdf5_hidden_why(layout, "opaque") == "opaque bytes");
    CHECK(hdf5_hidden_why(layout, "nothing") == "it has no elements and no shape");
    CHECK(hdf5_hidden_why(layout, "unwritten") == "never written: its elements are the fill value");
    CHECK(hdf5_hidden_why(layout, "outside") == "its elements are in external files");
    CHECK(hdf5_hidden_why(layout, "virtual") == "its elements are in other datasets (virtual)");
    CHECK(hdf5_hidden_why(layout, "soft") == "a soft or external link, which is not followed");
    CHECK(hdf5_hidden_why(layout, "external") == "a soft or external link, which is not followed");
    CHECK(hdf5_hidden_why(layout, "group.up") == "a link to a group that it is in");
    CHECK(layout.hidden.size() == 11);
    CHECK(cut_bytes(layout) == 6 + 32 + 16 + 4);
  }
}

TEST_CASE("hdf5: rows of chunks are parts of a tensor, tiles are boxes, and compressed chunks are cuts") {
  const std::string numbers = counted<float>(60);
  for (const char* sample : {"chunks", "chunks_latest"}) {
    CAPTURE(sample);
    const std::string file = hdf5_sample(sample);
    const Layout layout = hdf5_layout(file);
    const bool old = std::string_view(sample) == "chunks";
    for (const char* name : {"rows", "lead", "one", "growing_rows"}) {
      CAPTURE(name);
      const FoundTensor* tensor = hdf5_tensor(layout, name);
      REQUIRE(tensor != nullptr);
      CHECK(hdf5_bytes(*tensor, file) == numbers);
    }
    CHECK(hdf5_tensor(layout, "lead")->shape == Shape{2, 5, 6});
    CHECK(hdf5_tensor(layout, "lead")->parts.size() >= 2);
    CHECK((hdf5_tensor(layout, "growing") != nullptr) == old);
    if (!old) CHECK(hdf5_hidden_why(layout, "growing").find("extensible array") != std::string::npos);
    for (const char* name : {"gzip", "one_gzip", "growing_gzip"}) CHECK(hdf5_hidden_why(layout, name) == "compressed");
    CHECK(hdf5_hidden_why(layout, "shuffled") == "filtered");
    CHECK(hdf5_hidden_why(layout, "part") == "some chunks were never written: the fill value");
    CHECK(hdf5_hidden_why(layout, "none") == "never written: its elements are the fill value");
    const FoundTensor* tiles = hdf5_tensor(layout, "tiles");
    REQUIRE(tiles != nullptr);
    CHECK(tiles->dtype == DType::f32);
    CHECK(tiles->shape == Shape{10, 6});
    CHECK(tiles->grid == Borders{0, 4, 8, 12, 0, 4, 8});
    CHECK(tiles->parts.size() <= 2);  // the index may lie between chunks
    std::uint64_t tile_bytes = 0;
    for (const TensorPart& part : tiles->parts) tile_bytes += part.length;
    CHECK(tile_bytes == 6 * 64);
    const std::string first = hdf5_bytes(*tiles, file).substr(0, 64);
    CHECK(first.substr(0, 16) == numbers.substr(0, 16));
    CHECK(first.substr(16, 16) == numbers.substr(24, 16));
    std::uint64_t hidden_bytes = 0;
    for (const HiddenTensor& hidden : layout.hidden) hidden_bytes += hidden.bytes;
    CHECK(cut_bytes(layout) == hidden_bytes);
  }
}

TEST_CASE("hdf5: groups with many links, and an index in pages") {
  for (const char* sample : {"many", "many_latest", "many_tracked", "user_block"}) {
    CAPTURE(sample);
    const std::string file = hdf5_sample(sample);
    const Layout layout = hdf5_layout(file);
    CHECK(layout.tensors.size() == 30);
    for (int i = 0; i < 30; ++i) {
      const FoundTensor* tensor = hdf5_tensor(layout, fmt::format("layer_{}", i));
      REQUIRE(tensor != nullptr);
      CHECK(hdf5_bytes(*tensor, file) == std::string(2, static_cast<char>(i)));
    }
  }
  const std::string pages = hdf5_sample("pages_latest");
  const Layout layout = hdf5_layout(pages);
  REQUIRE(layout.tensors.size() == 1);
  CHECK(hdf5_bytes(layout.tensors[0], pages) == counted<std::uint8_t>(1100));
}

TEST_CASE("hdf5: a .keras file has the tensors of its member") {
  const std::string weights = hdf5_sample("tensors");
  const std::string file = zip_file({{"metadata.json", "{}"}, {"model.weights.h5", weights}});
  MemorySource source(file);
  const auto layout = parse_file("dir/m.keras", "m.keras", source);
  REQUIRE(layout.ok());
  CHECK(layout->format == "keras");
  CHECK(layout->tensors.size() == 19);
  CHECK(hdf5_bytes(*hdf5_tensor(*layout, "f8"), file) == counted<double>(6));
  CHECK(layout->cuts.size() == 2);

  const Layout packed = good("m.keras", zip_file({{"model.weights.h5", "deflated", 8}}));
  CHECK(packed.format == "keras");
  CHECK(hdf5_hidden_why(packed, "model.weights.h5") == "compressed");
  const std::string broken = zip_file({{"model.weights.h5", weights.substr(0, 3000)}});
  CHECK(says(kept("m.keras", broken), "hdf5: the file is truncated"));
  CHECK(good("m.keras", broken).cuts.size() == 1);
}

TEST_CASE("hdf5: the name or the first bytes claim a file") {
  const std::string file = hdf5_sample("many");
  CHECK(good("weights.bin", file).format == "hdf5");
  CHECK(good("m.weights.h5", file).format == "hdf5");
  CHECK(good("m.hdf5", hdf5_sample("user_block")).format == "hdf5");
  CHECK(good("m.bin", hdf5_sample("user_block")).format.empty());
  CHECK(says(kept("m.h5", "text"), "hdf5: the file has no signature of HDF5"));
  CHECK(says(kept("m.h5", ""), "hdf5: the file has no signature of HDF5"));
}

TEST_CASE("hdf5: the checksum of blocks counts") {
  CHECK(hdf5_checksum({}) == 0xdeadbeef);
  CHECK(hdf5_checksum(as_bytes("Four score and seven years ago")) == 0x17770551);
  std::string file = hdf5_sample("many_latest");
  const std::size_t header = file.find("OHDR", 48);
  REQUIRE(header != std::string::npos);
  file[header + 6] = static_cast<char>(file[header + 6] ^ 1);
  MemorySource source(file);
  CHECK(hdf5_opaque(file).ends_with("its checksum does not match"));
}

TEST_CASE("hdf5: a file that ends early is opaque, whatever its length") {
  for (const std::string& sample : hdf5_sample_names()) {
    CAPTURE(sample);
    const std::string file = hdf5_sample(sample);
    for (std::size_t length = 0; length < file.size(); length += length < 1024 ? 1 : 97)
      CHECK(hdf5_opaque(std::string_view(file).substr(0, length)).starts_with("hdf5: "));
  }
}

TEST_CASE("hdf5: changed files parse into a sound layout") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const std::string& sample : hdf5_sample_names()) {
    const std::string file = hdf5_sample(sample);
    for (int round = 0; round < 1000; ++round) {
      std::string bytes = file;
      for (std::uint64_t changes = 1 + random() % 3; changes-- > 0;)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      hdf5_layout(bytes);
      MemorySource source(bytes);
      static_cast<void>(read_hdf5(source, false));
    }
  }
}
