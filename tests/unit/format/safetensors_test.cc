#include <doctest/doctest.h>
#include <fmt/core.h>

#include <array>

#include "base/limits.h"
#include "builders.h"

using namespace weft;
using namespace weft::testing;

namespace {
constexpr std::string_view kName = "model.safetensors";

Error bad_header(std::string_view header, std::string_view data = "") {
  Error error = bad(kName, safetensors_raw(header, data));
  CHECK(error.code == Errc::invalid);
  return error;
}
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"a":{}}})", entry(dtype, shape, offsets));
}
}  // namespace

TEST_CASE("safetensors: every element type") {
  constexpr std::array kTypes = {"BOOL", "U8",  "I8",  "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ",
                                 "F4",   "I16", "U16", "F6_E2M3", "F6_E3M2", "F16",     "BF16",        "I32",
                                 "U32",  "F32", "F64", "I64",     "U64",     "C64"};
  for (const char* type : kTypes) {
    CAPTURE(type);
    const DTypeInfo* info = dtype_by_name(type);
    REQUIRE(info != nullptr);
    std::uint64_t bytes = 8 / info->block_elements * info->block_bytes;
    std::string header = one(type, "[2, 4]", fmt::format("[0, {}]", bytes));
    Layout layout = good(kName, safetensors_raw(header, std::string(bytes, 'x')));
    CHECK(layout.format == "safetensors");
    REQUIRE(layout.tensors.size() == 1);
    CHECK(layout.tensors[0].name == "a");
    CHECK(layout.tensors[0].dtype == info->type);
    CHECK(layout.tensors[0].shape == Shape{2, 4});
    CHECK(range_of(layout.tensors[0]).offset == 8 + header.size());
    CHECK(range_of(layout.tensors[0]).length == bytes);
  }
}

TEST_CASE("safetensors: types of other formats are refused by name") {
  for (const char* type : {"Q4_0", "C128", "NPY", "f32", ""}) {
    CAPTURE(type);
    CHECK(says(bad_header(one(type, "[1]", "[0, 16]"), std::string(16, 'x')), "tensor \"a\": expected a dtype"));
  }
}

TEST_CASE("safetensors: tensors are sorted by offset, whatever the header's order") {
  std::string header =
      fmt::format(R"({{"b":{},"a":{},"empty":{},"scalar":{}}})", entry("U8", "[3]", "[4,7]"),
                  entry("F32", "[1]", "[0,4]"), entry("F32", "[0, 5]", "[4,4]"), entry("U8", "[]", "[7,8]"));
  Layout layout = good(kName, safetensors_raw(header, "01234567"));
  REQUIRE(layout.tensors.size() == 4);
  CHECK(layout.tensors[0].name == "a");
  CHECK(layout.tensors[1].name == "empty");
  CHECK(range_of(layout.tensors[1]).length == 0);
  CHECK(layout.tensors[2].name == "b");
  CHECK(layout.tensors[3].name == "scalar");
  CHECK(layout.tensors[3].shape.empty());
}

TEST_CASE("safetensors: a file of no tensors, trailing spaces, null metadata") {
  CHECK(good(kName, safetensors_raw("{}")).tensors.empty());
  CHECK(good(kName, safetensors_raw("{}     \n ")).tensors.empty());
  CHECK(good(kName, safetensors_raw(" \n" + one("U8", "[1]", "[0,1]"), "x")).tensors.size() == 1);
  CHECK(good(kName, safetensors_raw(R"({"__metadata__":null})")).metadata.empty());
}

TEST_CASE("safetensors: metadata is kept within limits") {
  std::string big(limits::kMetadataTextMax + 1, 'x');
  std::string header = fmt::format(R"({{"__metadata__":{{"format":"pt","big":"{}","no\"te":"ü\n"}}}})", big);
  Layout layout = good(kName, safetensors_raw(header));
  REQUIRE(layout.metadata.size() == 2);
  CHECK(layout.metadata[0] == std::pair<std::string, std::string>("format", "pt"));
  CHECK(layout.metadata[1] == std::pair<std::string, std::string>("no\"te", "ü\n"));

  header = R"({"__metadata__":{"k0":"")";
  for (int i = 1; i < 2000; ++i) header += fmt::format(R"(,"k{}":"")", i);
  CHECK(good(kName, safetensors_raw(header + "}}")).metadata.size() == limits::kMetadataEntriesMax);
}

TEST_CASE("safetensors: unknown keys of a tensor are passed over, as the reference does") {
  std::string header =
      R"({"a":{"x":{"dtype":[1,{"y":null}]},"dtype":"U8","z":-1,"w":1.5,"shape":[1],"v":true,"data_offsets":[0,1],"u":[]}})";
  CHECK(good(kName, safetensors_raw(header, "1")).tensors.size() == 1);
}

TEST_CASE("safetensors: header length") {
  CHECK(says(bad(kName, ""), "expected 8 bytes of header length, got 0"));
  CHECK(says(bad(kName, le64(2).substr(0, 7)), "expected 8 bytes of header length, got 7"));
  CHECK(says(bad(kName, le64(3) + "{}"), "expected a header of 3 bytes, got a file with 2 bytes"));
  CHECK(
      says(bad(kName, le64(100'000'001) + "{}"), "expected a header of at most 100000000 bytes, got one of 100000001"));
  CHECK(says(bad(kName, le64(UINT64_MAX) + "{}"), "got one of 18446744073709551615"));
  CHECK(says(bad(kName, le64(0)), "begins with {"));
  CHECK(says(bad_header(" "), "begins with {"));
  CHECK(says(bad_header("[]"), "begins with {"));
}

TEST_CASE("safetensors: ranges tile the data") {
  auto two = [](std::string_view a, std::string_view b) {
    return fmt::format(R"({{"a":{},"b":{}}})", entry("U8", "[4]", a), entry("U8", "[4]", b));
  };
  Error overlap = bad_header(two("[0,4]", "[3,7]"), "01234567");
  CHECK(says(overlap, R"(tensor "b": expected data to begin at offset 4, got 3, which overlaps tensor "a")"));
  Error gap = bad_header(two("[0,4]", "[5,9]"), "012345678");
  CHECK(says(gap, R"(tensor "b": expected data to begin at offset 4, got 5, which leaves a gap)"));
  Error first = bad_header(two("[1,5]", "[5,9]"), "012345678");
  CHECK(says(first, R"(tensor "a": expected data to begin at offset 0, got 1)"));
  Error trailing = bad_header(two("[0,4]", "[4,8]"), "0123456789");
  CHECK(says(trailing, R"(tensor "b": expected the file to end after it, got 2 trailing bytes)"));
  CHECK(says(bad_header("{}", "x"), "header: expected the file to end after it, got 1 trailing bytes"));
  Error missing = bad_header(two("[0,4]", "[4,8]"), "0123456");
  CHECK(says(missing, R"(tensor "b": expected 4 bytes of data at offset 4, got a file with 7 bytes of data)"));
  Error empty_inside =
      bad_header(fmt::format(R"({{"a":{},"b":{}}})", entry("U8", "[4]", "[0,4]"), entry("U8", "[0]", "[2,2]")), "0123");
  CHECK(says(empty_inside, R"(tensor "b": expected data to begin at offset 4, got 2)"));
}

TEST_CASE("safetensors: shape and dtype agree with the range") {
  CHECK(says(bad_header(one("F32", "[2]", "[0,4]"), "0123"),
             R"(tensor "a": expected 8 bytes for F32 [2], got data_offsets [0, 4])"));
  CHECK(says(bad_header(one("U8", "[4]", "[4,0]"), "0123"), "got data_offsets [4, 0]"));
  CHECK(says(bad_header(one("F4", "[3]", "[0,2]"), "01"),
             R"(tensor "a": shape [3]: 3 elements are not whole F4 blocks)"));
  CHECK(says(bad_header(one("U8", "[4294967296, 4294967296]", "[0,0]")), "more than 2^64 elements"));
  CHECK(says(bad_header(one("F64", "[4611686018427387904]", "[0,0]")), "more than 2^64 bytes"));
  CHECK(says(bad_header(one("U8", "[18446744073709551615]", "[1,0]")), "expected 18446744073709551615 bytes"));
  CHECK(says(bad_header(one("U8", "[18446744073709551615]", "[0,18446744073709551615]")),
             "got a file with 0 bytes of data"));
  std::string shape = "[1";
  for (std::size_t i = 0; i < limits::kDimensionsMax; ++i) shape += ",1";
  CHECK(says(kept(kName, safetensors_raw(one("U8", shape + "]", "[0,1]"), "0")),
             R"(tensor "a": expected at most 32 dimensions)"));
}

TEST_CASE("safetensors: of duplicates the last counts, as in the reference") {
  std::string a = entry("U8", "[1]", "[0,1]");
  for (const char* again : {R"({{"a":{},"b":{},"a":{}}})", R"({{"a":{},"b":{},"\u0061":{}}})"}) {
    const std::string header =
        fmt::format(fmt::runtime(again), entry("U8", "[7]", "[0,7]"), entry("U8", "[2]", "[1,3]"), a);
    Layout layout = good(kName, safetensors_raw(header, "012"));
    REQUIRE(layout.tensors.size() == 2);
    CHECK(layout.tensors[0].name == "a");
    CHECK(layout.tensors[0].shape == Shape{1});
    CHECK(layout.tensors[1].name == "b");
  }
  CHECK(says(bad_header(fmt::format(R"({{"a":{},"a":{}}})", a, entry("U8", "[1]", "[1,2]")), "01"), "a gap"));
  Layout texts = good(kName, safetensors_raw(R"({"__metadata__":{"k":"1","j":"2","k":"3"}})"));
  REQUIRE(texts.metadata.size() == 2);
  CHECK(texts.metadata[1] == std::pair<std::string, std::string>("k", "3"));
  CHECK(says(bad_header(R"({"__metadata__":{},"__metadata__":{}})"), R"(expected one "__metadata__", got two)"));
  CHECK(says(bad_header(R"({"a":{"dtype":"U8","dtype":"U8"}})"), R"(tensor "a": expected one "dtype", got two)"));
}

TEST_CASE("safetensors: what is missing or of the wrong type is named") {
  CHECK(says(bad_header(R"({"a":{"shape":[],"data_offsets":[0,0]}})"), R"(tensor "a": expected a dtype, got none)"));
  CHECK(says(bad_header(R"({"a":{"dtype":"U8","data_offsets":[0,0]}})"), R"(tensor "a": expected a shape, got none)"));
  CHECK(says(bad_header(R"({"a":{"dtype":"U8","shape":[]}})"), R"(tensor "a": expected two data_offsets, got 0)"));
  CHECK(says(bad_header(one("U8", "[]", "[0]")), "expected two data_offsets, got 1"));
  CHECK(says(bad_header(one("U8", "[]", "[0,1,2]")), "expected two data_offsets, got more"));
  CHECK(says(bad_header(R"({"a":1})"), R"(expected an object for tensor "a", got the number 1)"));
  CHECK(says(bad_header(R"({"a":{"dtype":1}})"), R"(expected a string for the dtype of tensor "a")"));
  CHECK(says(bad_header(one("U8", "[1.0]", "[0,1]")),
             R"(expected dimensions in the shape of tensor "a", got the number 1)"));
  CHECK(says(bad_header(one("U8", "[-1]", "[0,1]")), "got the number -1"));
  CHECK(says(bad_header(one("U8", "[18446744073709551616]", "[0,1]")), "expected dimensions"));
  CHECK(says(bad_header(one("U8", "[[1]]", "[0,1]")), "got an array"));
  CHECK(says(bad_header(one("U8", "[true]", "[0,1]")), "got true"));
  CHECK(says(bad_header(one("U8", "\"1\"", "[0,1]")), "got the string \"1\""));
  CHECK(says(bad_header(R"({"__metadata__":{"k":1}})"),
             R"(expected a string for "k" of "__metadata__", got the number 1)"));
  CHECK(says(bad_header(R"({"__metadata__":[]})"), "got an array"));
}

TEST_CASE("safetensors: what is no JSON") {
  CHECK(says(bad_header("{"), "header: not JSON"));
  CHECK(says(bad_header("{}{}"), "header: not JSON"));
  CHECK(says(bad_header(std::string("{}\0", 3)), "header: not JSON at byte 2"));
  CHECK(says(bad_header(std::string("{}\0garbage", 10)), "header: not JSON at byte 2"));
  CHECK(says(bad_header("{\"\xff\":1}"), "expected a header in UTF-8"));
  CHECK(says(bad_header(R"({"\ud800":1})"), "header: not JSON"));
  CHECK(says(bad_header(R"({"a":{"x":)" + std::string(1'000'000, '[')), "nested deeper than 128 levels"));
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += R"({"a":)";
  CHECK(says(bad_header(deep), "nested deeper than 128 levels"));
}

TEST_CASE("safetensors: names are UTF-8 of bounded length, otherwise free") {
  std::string header =
      fmt::format(R"({{"a/../b\u0000ü":{},"":{}}})", entry("U8", "[1]", "[0,1]"), entry("U8", "[1]", "[1,2]"));
  Layout layout = good(kName, safetensors_raw(header, "01"));
  CHECK(layout.tensors[0].name == std::string("a/../b\0ü", 9));
  CHECK(layout.tensors[1].name.empty());
  header = fmt::format(R"({{"{}":{}}})", std::string(limits::kTensorNameMax + 1, 'n'), entry("U8", "[1]", "[0,1]"));
  CHECK(says(kept(kName, safetensors_raw(header, "0")), "expected a name of at most 4096 bytes, got 4097"));
}

TEST_CASE("safetensors: spellings of a tensor that only the reference reads keep the file") {
  CHECK(says(kept(kName, safetensors_raw(R"({"a":["U8",[1],[0,1]]})", "x")),
             R"(an object for tensor "a", got an array)"));
  CHECK(says(kept(kName, safetensors_raw(R"({"a":{"dtype":{"U8":null},"shape":[1],"data_offsets":[0,1]}})", "x")),
             R"(a string for the dtype of tensor "a", got an object)"));
}
