#include <doctest/doctest.h>
#include <fmt/core.h>

#include "base/limits.h"
#include "builders.h"

using namespace weft;
using namespace weft::testing;

namespace {
constexpr std::string_view kName = "weights.npy";

std::string file(std::string_view descr, std::string_view shape, std::size_t bytes, bool fortran_order = false) {
  return npy_raw(npy_dict(descr, shape, fortran_order), std::string(bytes, 'x'));
}
Error malformed(const std::string& bytes) {
  Error error = bad(kName, bytes);
  CHECK(error.code == Errc::invalid);
  return error;
}
Error bad_dict(std::string_view dict) {
  return malformed(npy_raw(dict, "1234"));
}
FoundTensor only_tensor(const std::string& bytes) {
  Layout layout = good(kName, bytes);
  CHECK(layout.format == "npy");
  REQUIRE(layout.tensors.size() == 1);
  return layout.tensors[0];
}
// A file that numpy reads, or may.
Error foreign(const std::string& bytes) {
  return kept(kName, bytes);
}
}  // namespace

TEST_CASE("npy: plain types are tensors named by the file") {
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.npy_descr.empty() || info.npy_descr.starts_with("|V")) continue;
    CAPTURE(std::string(info.npy_descr));
    FoundTensor tensor = only_tensor(file(fmt::format("'{}'", info.npy_descr), "(2, 3)", 6 * info.block_bytes));
    CHECK(tensor.name == "weights");
    CHECK(tensor.dtype == info.type);
    CHECK(tensor.shape == Shape{2, 3});
    CHECK(range_of(tensor).length == 6 * info.block_bytes);
    CHECK(tensor.descr.empty());
  }
}

TEST_CASE("npy: spellings of the same type") {
  CHECK(only_tensor(file("'<u1'", "(1,)", 1)).dtype == DType::u8);
  CHECK(only_tensor(file("'>i1'", "(1,)", 1)).dtype == DType::i8);
  CHECK(only_tensor(file("\"f4\"", "(1,)", 4)).dtype == DType::f32);
  CHECK(only_tensor(file("'=f4'", "(1L,)", 4)).dtype == DType::f32);
}

TEST_CASE("npy: shapes") {
  CHECK(only_tensor(file("'<f4'", "()", 4)).shape.empty());
  CHECK(only_tensor(file("'<f4'", "(3,)", 12)).shape == Shape{3});
  CHECK(only_tensor(file("'<f4'", "(0, 5)", 0)).parts.empty());
  CHECK(only_tensor(file("'<f4'", "(1,2,)", 8)).shape == Shape{1, 2});
  CHECK(says(malformed(file("'<f4'", "(3)", 12)), "expected ',' after the only dimension"));
  CHECK(says(malformed(file("'<f4'", "(,)", 4)), "expected an integer"));
  CHECK(says(malformed(file("'<f4'", "(-1,)", 4)), "expected an integer"));
  CHECK(says(malformed(file("'<f4'", "[3]", 12)), "expected '('"));
  CHECK(says(malformed(file("'<f4'", "(18446744073709551616,)", 12)), "expected an integer below 2^64"));
  CHECK(says(malformed(file("'<f4'", "(4294967296, 4294967296)", 0)),
             "expected fewer than 2^64 bytes, got shape [4294967296, 4294967296]"));
  CHECK(says(malformed(file("'<f4'", "(4611686018427387904,)", 0)), "expected fewer than 2^64 bytes"));
  std::string many = "(1";
  for (std::size_t i = 0; i < limits::kDimensionsMax; ++i) many += ",1";
  CHECK(says(foreign(file("'<f4'", many + ")", 4)), "expected at most 32 dimensions"));
}

TEST_CASE("npy: versions") {
  std::string dict = npy_dict("'<f4'", "(1,)");
  for (unsigned major : {1U, 2U, 3U}) CHECK(good(kName, npy_raw(dict, "1234", major)).tensors.size() == 1);
  for (unsigned major : {0U, 4U, 255U}) {
    Error error = bad(kName, npy_raw(dict, "1234", major));
    CHECK(error.code == Errc::invalid);
    CHECK(says(error, fmt::format("expected npy version 1.0, 2.0 or 3.0, got {}.0", major)));
  }
  CHECK(says(malformed("NUMPY, not"), "expected the magic"));
  CHECK(says(malformed(""), "expected 8 bytes at byte 0, got 0"));
  CHECK(says(foreign("PK\x03\x04 an archive"), "got a zip archive"));
  CHECK(says(foreign("\x80\x04\x95 a pickle"), "got a pickle"));
}

TEST_CASE("npy: header length") {
  CHECK(says(malformed("\x93NUMPY" + std::string("\1\0", 2) + le16(100) + "{}"),
             "expected a header of 100 bytes, got a file with 2 bytes"));
  CHECK(says(malformed("\x93NUMPY" + std::string("\2\0", 2) + le32(UINT32_MAX) + "{}"),
             "expected a header of at most 1048576 bytes"));
  CHECK(says(foreign(npy_raw(npy_dict("'<f4'", "(1,)") + std::string(1U << 20U, ' '), "1234", 2)),
             "expected a header of at most 1048576 bytes"));
}

TEST_CASE("npy: the data fills the file") {
  CHECK(says(malformed(file("'<f4'", "(2, 3)", 23)), "expected 24 bytes of data for shape [2, 3] of '<f4', got 23"));
  CHECK(says(foreign(file("'<f4'", "(2, 3)", 25)), "expected 24 bytes of data for shape [2, 3] of '<f4', got 25"));
  CHECK(says(malformed(file("'<U5'", "(2,)", 39)), "expected 40 bytes of data"));
}

TEST_CASE("npy: types and orders without a name of ours keep the dict") {
  struct Case {
    const char* descr;
    std::uint64_t bytes;
  };
  for (Case c : {Case{"'>f4'", 4}, Case{"'<U5'", 20}, Case{"'|S7'", 7}, Case{"'|V3'", 3}, Case{"'<M8[ns]'", 8},
                 Case{"'<m8[25s]'", 8}, Case{"'<M8'", 8}, Case{"'<f16'", 16}, Case{"'<c32'", 32}, Case{"'|S0'", 0},
                 Case{"'>c8'", 8}}) {
    CAPTURE(c.descr);
    std::string dict = npy_dict(c.descr, "(2, 3)");
    FoundTensor tensor = only_tensor(npy_raw(dict, std::string(6 * c.bytes, 'x')));
    CHECK(tensor.dtype == DType::npy_other);
    CHECK(tensor.shape == Shape{2, 3});
    CHECK(range_of(tensor).length == 6 * c.bytes);
    CHECK(tensor.descr + "\n" == dict);
  }
  FoundTensor fortran = only_tensor(file("'<f4'", "(2, 3)", 24, true));
  CHECK(fortran.dtype == DType::npy_other);
  CHECK(fortran.descr == "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }");
  CHECK(only_tensor(file("'<f4'", "(6,)", 24, true)).dtype == DType::f32);
}

TEST_CASE("npy: structured types and objects stay opaque") {
  for (const std::string& bytes : {file("'|O'", "(2,)", 5), file("'O8'", "()", 0)})
    CHECK(says(foreign(bytes), "an array of Python objects"));
  for (const std::string& bytes :
       {file("[('a', '<f4'), ('b', [('c', '|u1', (2,))]), (('title', 'd'), '<i8')]", "(2,)", 5),
        npy_raw(npy_dict("[('\xe9', '<f4')]", "(1,)"), "1234")})
    CHECK(says(foreign(bytes), "an array of a structured type"));
  CHECK(says(malformed(file("[('a', '<f4')", "(2,)", 8)), "expected ',' or ']'"));
  std::string deep = std::string(60'000, '[');
  CHECK(says(malformed(npy_raw("{'descr': " + deep)), "expected at most 16 nested lists"));
}

TEST_CASE("npy: files with descriptions that weft does not know are kept, because numpy may know them") {
  for (const char* descr : {"'<f3'", "'<b2'", "'<i16'", "'<q8'", "'<M4[s]'", "'<M8[s'", "'<f4 '", "'<'", "'<U'",
                            "'|S4294967296'", "'<U99999999999999999999'", "'float32'", "'<f4,<f4'"}) {
    CAPTURE(descr);
    Error error = foreign(file(descr, "(1,)", 4));
    CHECK(error.message.find("header: expected") != std::string::npos);
  }
  CHECK(says(malformed(file("''", "(1,)", 4)), "expected a type in 'descr', got an empty string"));
  CHECK(says(foreign(file("'<M8[\xff]'", "(1,)", 8)), "expected a type of numpy in 'descr', got '<M8[\\xff]'"));
}

TEST_CASE("npy: the header is one dict of three keys") {
  CHECK(says(bad_dict(""), "header: expected '{' at byte 0, got its end"));
  CHECK(says(bad_dict("{}"), "got no 'descr'"));
  CHECK(says(bad_dict("{'descr': '<f4', 'shape': (1,)}"), "got no 'fortran_order'"));
  CHECK(says(bad_dict("{'descr': '<f4', 'fortran_order': False}"), "got no 'shape'"));
  CHECK(says(foreign(npy_raw("{'descr': '<f4', 'descr': '<f4'}")), "got a second 'descr'"));
  CHECK(says(bad_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}"), "once each, got 'x'"));
  CHECK(says(bad_dict("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}"), "expected True or False at byte 34"));
  CHECK(says(bad_dict("{'descr': '<f4' False, 'shape': (1,)}"), "expected ',' or '}'"));
  CHECK(says(bad_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"),
             "expected white space after the dict"));
  CHECK(says(bad_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2,)}"), "expected ',' or ')'"));
  CHECK(says(bad_dict("{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}"), "expected a string"));
  CHECK(good(kName, npy_raw("  { 'shape' : ( 1 , ) , 'fortran_order':False,\n'descr':'<f4'}   \n", "1234"))
            .tensors.size() == 1);
}

TEST_CASE("npy: a header that only Python reads keeps the file") {
  for (const char* dict : {"{'descr': '<' 'f4', 'fortran_order': False, 'shape': (1,)}",
                           "{u'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
                           "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (1,)}",
                           "{'descr': [(u'a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
                           "{'descr': [('a\\'b', '<f4')], 'fortran_order': False, 'shape': (1,)}",
                           "{\t'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
                           "{'descr': '<f4', # a comment\n'fortran_order': False, 'shape': (1,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (0x1,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (0_1,)}"}) {
    CAPTURE(dict);
    CHECK(says(foreign(npy_raw(dict, "1234")), "header: expected"));
  }
}
