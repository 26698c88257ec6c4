#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/limits.h"
#include "builders.h"

using namespace weft;
using namespace weft::testing;

namespace {
constexpr std::string_view kName = "model.gguf";
enum ValueType : std::uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kArray, kU64, kI64, kF64 };
constexpr std::uint32_t kF32Tensor = 0;

Error malformed(const std::string& file) {
  Error error = bad(kName, file);
  CHECK(error.code == Errc::invalid);
  return error;
}
// A file that gguf-py reads, or that a newer one may.
Error foreign(const std::string& file) {
  return kept(kName, file);
}
// Returns an array value: element type, count, values.
std::string array(std::uint32_t type, std::uint64_t count, std::string_view values) {
  return le32(type) + le64(count) + std::string(values);
}
std::string value_of(const Layout& layout, std::string_view key) {
  auto it =
      std::find_if(layout.metadata.begin(), layout.metadata.end(), [&](const auto& pair) { return pair.first == key; });
  return it == layout.metadata.end() ? "(none)" : it->second;
}
}  // namespace

TEST_CASE("gguf: tensors, dimensions outermost first, offsets from the aligned data") {
  for (std::uint32_t version : {2U, 3U}) {
    CAPTURE(version);
    GgufBuilder builder(version);
    builder.text("general.architecture", "llama").tensor("b", {3, 2}, kF32Tensor, 32).tensor("a", {4}, kF32Tensor, 0);
    std::string file = builder.file(std::string(32 + 24, 'x'));
    Layout layout = good(kName, file);
    CHECK(layout.format == "gguf");
    CHECK(value_of(layout, "general.architecture") == "llama");
    REQUIRE(layout.tensors.size() == 2);
    CHECK(layout.tensors[0].name == "a");
    CHECK(range_of(layout.tensors[0]).offset == file.size() - 56);
    CHECK(range_of(layout.tensors[0]).offset % 32 == 0);
    CHECK(layout.tensors[1].name == "b");
    CHECK(layout.tensors[1].shape == Shape{2, 3});
    CHECK(layout.tensors[1].dtype == DType::f32);
    CHECK(range_of(layout.tensors[1]).length == 24);
  }
}

TEST_CASE("gguf: every element type") {
  struct Type {
    std::uint32_t number;
    const char* name;
    std::uint64_t bytes_of_256;
  };
  constexpr std::array kTypes = {
      Type{0, "F32", 1024},    Type{1, "F16", 512},     Type{2, "Q4_0", 144},    Type{3, "Q4_1", 160},
      Type{6, "Q5_0", 176},    Type{7, "Q5_1", 192},    Type{8, "Q8_0", 272},    Type{9, "Q8_1", 288},
      Type{10, "Q2_K", 84},    Type{11, "Q3_K", 110},   Type{12, "Q4_K", 144},   Type{13, "Q5_K", 176},
      Type{14, "Q6_K", 210},   Type{15, "Q8_K", 292},   Type{16, "IQ2_XXS", 66}, Type{17, "IQ2_XS", 74},
      Type{18, "IQ3_XXS", 98}, Type{19, "IQ1_S", 50},   Type{20, "IQ4_NL", 144}, Type{21, "IQ3_S", 110},
      Type{22, "IQ2_S", 82},   Type{23, "IQ4_XS", 136}, Type{24, "I8", 256},     Type{25, "I16", 512},
      Type{26, "I32", 1024},   Type{27, "I64", 2048},   Type{28, "F64", 2048},   Type{29, "IQ1_M", 56},
      Type{30, "BF16", 512},   Type{34, "TQ1_0", 54},   Type{35, "TQ2_0", 66},   Type{39, "MXFP4", 136},
      Type{40, "NVFP4", 144},  Type{41, "Q1_0", 36},
  };
  for (const Type& type : kTypes) {
    CAPTURE(type.name);
    std::string file = GgufBuilder().tensor("t", {256}, type.number, 0).file(std::string(type.bytes_of_256, 'x'));
    Layout layout = good(kName, file);
    REQUIRE(layout.tensors.size() == 1);
    CHECK(dtype_info(layout.tensors[0].dtype)->name == type.name);
    CHECK(range_of(layout.tensors[0]).length == type.bytes_of_256);
  }
}

TEST_CASE("gguf: files with element types that ggml removed or that are newer are kept") {
  for (std::uint32_t type : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U}) {
    Error error = foreign(GgufBuilder().tensor("t", {256}, type, 0).file(""));
    CHECK(says(error, fmt::format("tensor \"t\": expected an element type that ggml has, got {}", type)));
  }
  CHECK(
      says(foreign(GgufBuilder().tensor("t", {256}, 42, 0).file("")), "expected an element type from 0 to 41, got 42"));
  CHECK(says(malformed(GgufBuilder().tensor("t", {256}, 256, 0).file("")), "got 256"));
  CHECK(says(malformed(GgufBuilder().tensor("t", {256}, UINT32_MAX, 0).file("")), "got 4294967295"));
}

TEST_CASE("gguf: metadata of every type") {
  GgufBuilder builder;
  builder.key("u8", kU8, "\xff").key("i8", kI8, "\xff").key("u16", kU16, le16(65535)).key("i16", kI16, le16(65535));
  builder.key("u32", kU32, le32(UINT32_MAX)).key("i32", kI32, le32(UINT32_MAX)).key("bool", kBool, "\x01");
  builder.key("f32", kF32, le32(std::bit_cast<std::uint32_t>(1.5F))).key("u64", kU64, le64(UINT64_MAX));
  builder.key("i64", kI64, le64(UINT64_MAX)).key("f64", kF64, le64(std::bit_cast<std::uint64_t>(-0.25)));
  builder.text("text", "grün\n").text("bytes", "\xff").text("long", std::string(limits::kMetadataTextMax + 1, 'x'));
  builder.key("numbers", kArray, array(kU16, 3, "abcdef")).key("none", kArray, array(kText, 0, ""));
  builder.key("texts", kArray, array(kText, 2, gguf_text("x") + gguf_text("")));
  builder.key("nested", kArray, array(kArray, 2, array(kU8, 1, "x") + array(kText, 1, gguf_text("y"))));
  builder.alignment(64).tensor("t", {1}, kF32Tensor, 0);
  Layout layout = good(kName, builder.file("1234", 64));
  CHECK(value_of(layout, "u8") == "255");
  CHECK(value_of(layout, "i8") == "-1");
  CHECK(value_of(layout, "u16") == "65535");
  CHECK(value_of(layout, "i16") == "-1");
  CHECK(value_of(layout, "u32") == "4294967295");
  CHECK(value_of(layout, "i32") == "-1");
  CHECK(value_of(layout, "bool") == "true");
  CHECK(value_of(layout, "f32") == "1.5");
  CHECK(value_of(layout, "u64") == "18446744073709551615");
  CHECK(value_of(layout, "i64") == "-1");
  CHECK(value_of(layout, "f64") == "-0.25");
  CHECK(value_of(layout, "text") == "grün\n");
  CHECK(value_of(layout, "general.alignment") == "64");
  for (const char* dropped : {"bytes", "long", "numbers", "none", "texts", "nested"})
    CHECK(value_of(layout, dropped) == "(none)");
  CHECK(range_of(layout.tensors[0]).offset % 64 == 0);
}

TEST_CASE("gguf: magic and version") {
  CHECK(says(malformed(""), "GGUF header: expected 4 bytes at byte 0, got 0"));
  CHECK(says(malformed(GgufBuilder().magic("GGML").file("")), "expected the magic \"GGUF\""));
  for (const std::uint32_t version : {0U, 1U, 4U, 0x01000000U, 0x04000000U})
    CHECK(says(malformed(GgufBuilder(version).file("")), fmt::format("expected version 2 or 3, got {}", version)));
  CHECK(says(foreign(GgufBuilder(0x03000000).file("")), "got a big-endian one of version 3"));
  CHECK(says(foreign(GgufBuilder(0x02000000).file("")), "got a big-endian one of version 2"));
}

TEST_CASE("gguf: counts and lengths near 2^64 are refused by what the file can hold") {
  for (std::uint64_t huge : {UINT64_MAX, UINT64_MAX - 7, std::uint64_t{1} << 63U, std::uint64_t{1'000'000}}) {
    CAPTURE(huge);
    CHECK(says(malformed(GgufBuilder().tensor_count(huge).file("")), fmt::format("got a count of {}", huge)));
    CHECK(says(malformed(GgufBuilder().key_count(huge).file("")), fmt::format("got a count of {}", huge)));
    CHECK(says(malformed(GgufBuilder().key_count(1).file("").substr(0, 24) + le64(huge) + "abcdef"),
               "metadata 0: expected a key of 1 to"));
    Error text = malformed(GgufBuilder().key("k", kText, le64(huge)).file(""));
    CHECK(says(text, fmt::format("metadata \"k\": expected {} bytes", huge)));
    Error array_count = malformed(GgufBuilder().key("k", kArray, array(kU64, huge, "")).file(""));
    CHECK(says(array_count, "metadata \"k\": expected an array of at most 1 values in the 15 bytes left"));
    Error array_text = malformed(GgufBuilder().key("k", kArray, array(kText, 1, le64(huge))).file(""));
    CHECK(says(array_text, fmt::format("expected {} bytes", huge)));
    std::string name = GgufBuilder().tensor_count(1).file("").substr(0, 24) + le64(huge) + std::string(24, 'x');
    CHECK(says(malformed(name), "tensor 0: expected a name of at most 4096 bytes"));
  }
}

TEST_CASE("gguf: keys") {
  CHECK(says(foreign(GgufBuilder().text("", "x").file("")), "metadata 0: expected a key of 1 to 65535 bytes, got 0"));
  CHECK(says(foreign(GgufBuilder().text(std::string(65'536, 'k'), "x").file("")), "got 65536"));
  CHECK(says(malformed(GgufBuilder().text("\xff", "x").file("")), "expected a key in UTF-8"));
  CHECK(says(malformed(GgufBuilder().text("k", "x").text("j", "").text("k", "y").file("")),
             "metadata \"k\": expected each key once"));
  CHECK(says(malformed(GgufBuilder().key("k", 13, "").file("")),
             "metadata \"k\": expected a value type from 0 to 12, got 13"));
  CHECK(says(malformed(GgufBuilder().key("k", kArray, array(13, 0, "")).file("")),
             "expected a value type from 0 to 12, got 13"));
}

TEST_CASE("gguf: arrays nest to a bounded depth") {
  auto nested = [](std::size_t depth) {
    std::string value;
    for (std::size_t i = 1; i < depth; ++i) value += array(kArray, 1, "");
    value += array(kU8, 1, "x");
    return GgufBuilder().key("k", kArray, value).file("");
  };
  CHECK(good(kName, nested(limits::kGgufArrayDepthMax)).tensors.empty());
  CHECK(
      says(malformed(nested(limits::kGgufArrayDepthMax + 1)), "metadata \"k\": expected arrays nested at most 4 deep"));
  CHECK(says(malformed(nested(100'000)), "nested at most 4 deep"));
}

TEST_CASE("gguf: alignment") {
  auto with = [](std::uint32_t type, std::string_view value) {
    return GgufBuilder().key("general.alignment", type, value).file("", 1);
  };
  CHECK(says(malformed(with(kU32, le32(0))),
             "\"general.alignment\": expected an alignment that is a power of two, got 0"));
  CHECK(says(malformed(with(kU32, le32(48))), "a power of two, got 48"));
  CHECK(says(malformed(with(kU64, le64(32))), "expected an alignment of type u32 (4), got type 10"));
  CHECK(says(malformed(with(kText, gguf_text("32"))), "got type 8"));
  CHECK(good(kName, with(kU32, le32(1))).tensors.empty());
  CHECK(good(kName, with(kU32, le32(1U << 31U))).tensors.empty());
}

TEST_CASE("gguf: dimensions and sizes") {
  CHECK(says(foreign(GgufBuilder().tensor("t", {1, 1, 1, 1, 1}, kF32Tensor, 0).file("1234")),
             "tensor \"t\": expected at most 4 dimensions, got 5"));
  CHECK(says(malformed(GgufBuilder().tensor("t", {16, 2}, 2, 0).file(std::string(18, 'x'))),
             "expected rows of whole Q4_0 blocks of 32 elements, got shape [2, 16]"));
  CHECK(says(malformed(GgufBuilder().tensor("t", {1ULL << 32U, 1ULL << 32U}, kF32Tensor, 0).file("")),
             "tensor \"t\": shape [4294967296, 4294967296] has more than 2^64 elements"));
  CHECK(says(malformed(GgufBuilder().tensor("t", {1ULL << 62U}, kF32Tensor, 0).file("")), "more than 2^64 bytes"));
  CHECK(good(kName, GgufBuilder().tensor("t", {}, kF32Tensor, 0).file("1234")).tensors[0].shape.empty());
  CHECK(good(kName, GgufBuilder().tensor("t", {0, 7}, kF32Tensor, 0).file("")).tensors[0].parts.empty());
}

TEST_CASE("gguf: names") {
  CHECK(says(malformed(GgufBuilder().tensor("t", {0}, kF32Tensor, 0).tensor("t", {0}, kF32Tensor, 0).file("")),
             "tensor \"t\": expected each name once"));
  CHECK(says(foreign(GgufBuilder().tensor(std::string(4097, 'n'), {1}, kF32Tensor, 0).file("1234")), "got 4097"));
  CHECK(says(malformed(GgufBuilder().tensor("\xff", {1}, kF32Tensor, 0).file("1234")), "expected a name in UTF-8"));
}

TEST_CASE("gguf: tensors lie one after the other, aligned, to the end of the file") {
  auto two = [](std::uint64_t a, std::uint64_t b, std::size_t data) {
    return GgufBuilder().tensor("a", {10}, kF32Tensor, a).tensor("b", {1}, kF32Tensor, b).file(std::string(data, 'x'));
  };
  CHECK(good(kName, two(0, 64, 68)).tensors.size() == 2);
  CHECK(good(kName, two(0, 64, 96)).tensors.size() == 2);  // padded to the alignment
  CHECK(good(kName, two(0, 64, 80)).tensors.size() == 2);
  CHECK(says(foreign(two(0, 64, 97)), "tensor \"b\": expected the file to end after it, got 29 trailing bytes"));
  CHECK(
      says(malformed(two(0, 64, 67)), "tensor \"b\": expected 4 bytes of data at offset 64, got a file with 67 bytes"));
  CHECK(
      says(foreign(two(0, 33, 68)), "tensor \"b\": expected an offset that is a multiple of the alignment 32, got 33"));
  CHECK(says(foreign(two(0, 32, 68)),
             "tensor \"b\": expected data to begin at offset 64, got 32, which overlaps tensor \"a\""));
  CHECK(
      says(foreign(two(0, 96, 100)), "tensor \"b\": expected data to begin at offset 64, got 96, which leaves a gap"));
  CHECK(says(foreign(two(32, 96, 100)), "tensor \"a\": expected data to begin at offset 0, got 32"));
  CHECK(says(malformed(two(0, UINT64_MAX - 31, 68)), "got a file with 68 bytes of data"));
  CHECK(says(foreign(GgufBuilder().file(std::string(32, 'x'))),
             "header: expected the file to end after it, got 32 trailing bytes"));
}

TEST_CASE("gguf: a header longer than the reader's window") {
  GgufBuilder builder;
  std::string texts;
  for (int i = 0; i < 30'000; ++i) texts += gguf_text(fmt::format("token {}", i));
  builder.key("tokenizer.ggml.tokens", kArray, array(kText, 30'000, texts)).text("after", "found");
  builder.key("scores", kArray, array(kF32, 100'000, std::string(400'000, 'x')));
  for (std::uint64_t i = 0; i < 3'000; ++i) builder.tensor(fmt::format("blk.{}.weight", i), {8}, kF32Tensor, 32 * i);
  Layout layout = good(kName, builder.file(std::string(3'000 * 32, 'x')));
  CHECK(value_of(layout, "after") == "found");
  REQUIRE(layout.tensors.size() == 3'000);
  CHECK(layout.tensors[2'999].name == "blk.2999.weight");
}
