#include <doctest/doctest.h>
#include <fmt/core.h>

#include <random>

#include "base/limits.h"
#include "builders.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::string array(std::string_view descr, std::string_view shape, std::size_t bytes, bool fortran_order = false) {
  return npy_raw(npy_dict(descr, shape, fortran_order), std::string(bytes, 'x'));
}

std::string why_hidden(const std::string& member, unsigned method = 0) {
  const Layout layout = good("m.npz", zip_file({{"w.npy", member, method}}));
  CHECK(layout.format == "npz");
  CHECK(layout.tensors.empty());
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].name == "w");
  CHECK(layout.hidden[0].bytes == member.size());
  return layout.hidden[0].why;
}

}  // namespace

TEST_CASE("npz: each stored member is a tensor, named without its suffix") {
  const std::string first = array("'<f4'", "(2, 3)", 24), second = array("'|b1'", "()", 1);
  const std::string archive =
      zip_file({{"layer/w.npy", first}, {"b.npy", second}, {"none.npy", array("'<i8'", "(0, 4)", 0)}});
  const Layout layout = good("m.npz", archive);
  CHECK(layout.format == "npz");
  REQUIRE(layout.tensors.size() == 3);
  CHECK(layout.tensors[0].name == "layer/w");
  CHECK(layout.tensors[0].dtype == DType::f32);
  CHECK(layout.tensors[0].shape == Shape{2, 3});
  CHECK(range_of(layout.tensors[0]).offset == archive.find("xxxx"));
  CHECK(range_of(layout.tensors[0]).length == 24);
  CHECK(layout.tensors[1].name == "b");
  CHECK(layout.tensors[1].dtype == DType::boolean);
  CHECK(layout.tensors[2].parts.empty());
  CHECK(layout.hidden.empty());
  CHECK(layout.cuts.size() == 3);
  CHECK(layout.cuts[0].length == first.size());
}

TEST_CASE("npz: orders and types that need more than a dtype") {
  const auto only = [](const std::string& member) {
    const Layout layout = good("m.npz", zip_file({{"w.npy", member}}));
    REQUIRE(layout.tensors.size() == 1);
    return layout.tensors[0];
  };
  const FoundTensor fortran = only(array("'<f4'", "(2, 3, 4)", 96, true));
  CHECK(fortran.dtype == DType::f32);
  CHECK(fortran.strides == Strides{1, 2, 6});
  CHECK(fortran.descr.empty());
  CHECK(only(array("'<f4'", "(6,)", 24, true)).strides.empty());
  // One row or one column lies alike in both orders.
  CHECK(only(array("'<f4'", "(1, 6)", 24, true)).strides.empty());
  CHECK(only(array("'<f4'", "(6, 1)", 24, true)).strides.empty());
  CHECK(only(array("'<f4'", "(1, 6, 1)", 24, true)).strides.empty());
  CHECK(only(array("'<f4'", "(2, 1, 3)", 24, true)).strides == Strides{1, 2, 2});
  CHECK(only(array("'<f4'", "(0, 9223372036854775808, 4)", 0, true)).strides.empty());
  const FoundTensor big = only(array("'>f4'", "(2, 3)", 24, true));
  CHECK(big.dtype == DType::npy_other);
  CHECK(big.strides.empty());
  CHECK(big.descr == "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }");
  CHECK(only(array("'<U3'", "(2,)", 24)).dtype == DType::npy_other);
  CHECK(range_of(only(array("'<f4'", "(2,)", 8) + "bytes that numpy does not read")).length == 8);
}

TEST_CASE("npz: an array that weft cannot show is hidden, and the others are shown") {
  CHECK(why_hidden("deflated bytes", 8) == "compressed");
  CHECK(why_hidden(array("'|O'", "(2,)", 5)) == "expected elements of a fixed size, got an array of Python objects");
  CHECK(why_hidden(array("[('a', '<f4')]", "(2,)", 8)) ==
        "expected elements of one type, got an array of a structured type");
  CHECK(why_hidden(array("'<f4'", "(2,)", 7)).starts_with("expected 8 bytes of data"));
  CHECK(why_hidden("no npy file").starts_with("expected the magic"));
  CHECK(why_hidden("").starts_with("expected 8 bytes"));
  CHECK(why_hidden(npy_raw("{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}", "1234"))
            .starts_with("header: expected a string"));
  CHECK(why_hidden(npy_raw(std::string(60'000, '['))).starts_with("header: expected '{'"));
  CHECK(why_hidden(array("'<f4'", "(1152921504606846976,)", 4)).starts_with("expected 4611686018427387904 bytes"));
  const Layout layout = good("m.npz", zip_file({{"\xff.npy", array("'<f4'", "(1,)", 4)},
                                                {"c.npy", "deflated", 8},
                                                {"w.npy", array("'<f4'", "(1,)", 4)}}));
  REQUIRE(layout.tensors.size() == 1);
  CHECK(layout.tensors[0].name == "w");
  REQUIRE(layout.hidden.size() == 2);
  CHECK(layout.hidden[0].name == "\\xff");
  CHECK(layout.hidden[1].name == "c");
  CHECK(layout.cuts.size() == 3);
}

TEST_CASE("npz: the list of hidden arrays is bounded") {
  std::vector<ZipPart> parts;
  for (std::size_t i = 0; i < limits::kHiddenTensorsMax + 5; ++i) parts.push_back({fmt::format("{}.npy", i), "x", 8});
  const Layout layout = good("m.npz", zip_file(parts));
  CHECK(layout.hidden.size() == limits::kHiddenTensorsMax);
  CHECK(layout.hidden_more == 5);
}

TEST_CASE("npz: its members decide, and its name where they do not") {
  const std::string arrays = zip_file({{"w.npy", array("'<f4'", "(1,)", 4)}});
  const std::string mixed = zip_file({{"w.npy", array("'<f4'", "(1,)", 4)}, {"readme.txt", "text"}});
  CHECK(good("weights.bin", arrays).format == "npz");
  CHECK(good("weights.bin", mixed).format.empty());
  CHECK(good("weights.bin", mixed).cuts.size() == 2);
  CHECK(good("weights.bin", mixed).metadata.empty());
  CHECK(good("w.npz", mixed).tensors.size() == 1);
  CHECK(good("w.npz", mixed).cuts.size() == 2);
  CHECK(good("w.npz", zip_file({})).format == "npz");
  CHECK(good("w.npz", zip_file({{"a/data.pkl", "N."}})).format == "torch zip");
  CHECK(good("w.npz", zip_file({{"data.pkl.npy", array("'<f4'", "(1,)", 4)}})).format == "npz");
  CHECK(good("w.zip", zip_file({})).format.empty());
}

TEST_CASE("npz: a file that is no sound archive is kept with the reason") {
  const std::string archive = zip_file({{"w.npy", array("'<f4'", "(1,)", 4)}});
  CHECK(says(kept("m.npz", "text"), "expected a zip archive, got 4 bytes"));
  CHECK(says(kept("m.npz", ""), "expected a zip archive, got 0 bytes"));
  CHECK(says(kept("m.npz", archive + "x"), "expected the zip archive to end after its directory"));
  CHECK(says(kept("m.bin", archive.substr(0, archive.size() - 1)), "zip"));
  CHECK(good("notes.txt", "PK is how it begins").metadata.empty());
  for (std::size_t length = 0; length < archive.size(); ++length) kept("m.npz", archive.substr(0, length));
}

TEST_CASE("npz: changed archives parse into a sound layout") {
  const std::string archive = zip_file(
      {{"w.npy", array("'<f4'", "(2, 3)", 24, true)}, {"b.npy", array("'>u2'", "(3,)", 6)}, {"c.npy", "x", 8}});
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = archive;
    for (std::uint64_t changes = 1 + random() % 3; changes-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    good("m.npz", bytes);
  }
}
