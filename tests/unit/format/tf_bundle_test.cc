// Checkpoints of TensorFlow.
#include <doctest/doctest.h>

#include <map>

#include "allocation.h"
#include "base/limits.h"
#include "builders.h"
#include "format/tf/bundle_entry.h"
#include "memory_group.h"
#include "tf_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr unsigned kFloat = 1, kString = 7, kVariant = 21, kInt4 = 29;
using Files = std::map<std::string, std::string>;

const Files& one_data() {
  static const Files files = {{"m.data-00000-of-00001", std::string(6000, 'd')}};
  return files;
}

Layout parse(const std::string& index, const Files& files = one_data()) {
  MemoryGroup group("m.index", index, files);
  auto layout = parse_file("dir/m.index", group);
  REQUIRE(layout.ok());
  return *std::move(layout);
}

const FoundTensor& only(const Layout& layout) {
  CHECK(layout.format == "tf bundle");
  CHECK(layout.hidden.empty());
  REQUIRE(layout.tensors.size() == 1);
  return layout.tensors[0];
}

std::string why_hidden(const Layout& layout) {
  CHECK(layout.format == "tf bundle");
  CHECK(layout.tensors.empty());
  REQUIRE(layout.hidden.size() == 1);
  return layout.hidden[0].why;
}
std::string why_hidden(const std::string& value, const Files& files = one_data()) {
  return why_hidden(parse(tf_index({{"w", value}}), files));
}

std::string why_opaque(const std::string& index) {
  const Layout layout = parse(index);
  CHECK(layout.format.empty());
  CHECK(layout.tensors.empty());
  CHECK(layout.hidden.empty());
  REQUIRE(layout.metadata.size() == 1);
  CHECK(layout.metadata[0].first == kNoTensors);
  return layout.metadata[0].second;
}

// The key of a slice of a tensor that has a name of plain letters, in one dimension, with numbers below 64.
std::string small_key(std::string_view tensor, unsigned start, unsigned length) {
  return std::string("\0", 1) + std::string(tensor) + std::string("\0\1\1\1", 4) + static_cast<char>(0x80U | start) +
         static_cast<char>(0x80U | length);
}

// An index with the tensor w of 4 floats in two slices of 2, which lie at 8 and at 100.
TfEntries sliced(std::uint64_t first_length = 8) {
  return {{small_key("w", 0, 2), tf_value(kFloat, {2}, 8, first_length)},
          {small_key("w", 2, 2), tf_value(kFloat, {2}, 100, 8)},
          {"w", tf_value(kFloat, {4}, 0, 0) + tf_slice({{0, 2}}) + tf_slice({{2, 2}})}};
}

}  // namespace

TEST_CASE("tf bundle: tensors lie in the data files beside the index") {
  const Files two = {{"m.data-00000-of-00002", std::string(40, '0')}, {"m.data-00001-of-00002", std::string(9, '1')}};
  const Layout layout = parse(tf_index({{"net/dense/kernel", tf_value(kFloat, {2, 3}, 16, 24)},
                                        {"net/dense/bias", tf_value(kFloat, {2}, 1, 8, 1)},
                                        {"net/empty", tf_value(kFloat, {0, 3}, 40, 0)},
                                        {"net/step", tf_value(9, {}, 0, 8)}},
                                       2),
                              two);
  CHECK(layout.format == "tf bundle");
  CHECK(layout.hidden.empty());
  REQUIRE(layout.tensors.size() == 4);
  std::map<std::string, FoundTensor> by_name;
  for (const FoundTensor& tensor : layout.tensors) by_name[tensor.name] = tensor;
  const FoundTensor& kernel = by_name["net.dense.kernel"];
  CHECK(kernel.dtype == DType::f32);
  CHECK(kernel.shape == Shape{2, 3});
  REQUIRE(kernel.parts.size() == 1);
  CHECK(layout.others[kernel.parts[0].file - 1] == "m.data-00000-of-00002");
  CHECK(range_of(kernel) == Range{16, 24});
  CHECK(layout.others[by_name["net.dense.bias"].parts[0].file - 1] == "m.data-00001-of-00002");
  CHECK(range_of(by_name["net.dense.bias"]) == Range{1, 8});
  CHECK(by_name["net.empty"].parts.empty());
  CHECK(by_name["net.step"].dtype == DType::i64);
  CHECK(by_name["net.step"].shape.empty());
}

TEST_CASE("tf bundle: a name may be empty but for the suffix, and a data file has no tensors of its own") {
  MemoryGroup group(".index", tf_index({{"w", tf_value(kFloat, {2}, 0, 8)}}),
                    {{".data-00000-of-00001", std::string(8, 'd')}});
  const auto layout = parse_file("dir/.index", group);
  REQUIRE(layout.ok());
  CHECK(only(*layout).name == "w");
  const Layout data = good("m.data-00000-of-00001", npy_raw(npy_dict("<f4", "2,"), "01234567"));
  CHECK(data.tensors.empty());
  CHECK(data.format.empty());
}

TEST_CASE("tf bundle: equal names, once slashes are dots, stay apart") {
  const Layout layout = parse(tf_index({{"a.b", tf_value(kFloat, {1}, 0, 4)}, {"a/b", tf_value(kFloat, {1}, 4, 4)}}));
  REQUIRE(layout.tensors.size() == 2);
  CHECK(layout.tensors[0].name == "a.b");
  CHECK(layout.tensors[1].name == "a.b~2");
}

TEST_CASE("tf bundle: an index of many blocks") {
  std::vector<std::string> blocks = {tf_block({{"", tf_header()}})};
  for (int i = 100; i < 200; ++i) {
    const std::string name = "layer/" + std::to_string(i);
    blocks.push_back(
        tf_block({{name + "/b", tf_value(kFloat, {1}, 0, 4)}, {name + "/w", tf_value(kFloat, {1}, 4, 4)}}));
  }
  blocks.push_back(tf_block({}));
  const Layout layout = parse(tf_table(blocks));
  CHECK(layout.tensors.size() == 200);
  CHECK(layout.hidden.empty());
}

TEST_CASE("tf bundle: types that weft lacks are hidden, and their bytes are cuts") {
  const Layout layout = parse(tf_index({{"_CHECKPOINTABLE_OBJECT_GRAPH", tf_value(kString, {}, 0, 5000)}}));
  CHECK(why_hidden(layout) == "a type that weft lacks, STRING");
  CHECK(layout.hidden[0].bytes == 5000);
  CHECK(!layout.hidden[0].dtype);
  REQUIRE(layout.cuts.size() == 1);
  CHECK(layout.cuts[0].file == 1);
  CHECK(layout.cuts[0].length == 5000);
  CHECK(why_hidden(tf_value(kVariant, {}, 0, 4)) == "a type that weft lacks, VARIANT");
  CHECK(why_hidden(tf_value(kInt4, {2}, 0, 2)) == "a type that weft lacks, INT4");
  CHECK(why_hidden(tf_value(99, {2}, 0, 2)) == "a type that weft lacks, number 99");
  CHECK(why_hidden(tf_value(101, {2}, 0, 2)) == "a type that weft lacks, number 101");
  CHECK(why_hidden(tf_value(0, {2}, 0, 2)) == "a type that weft lacks, INVALID");
}

TEST_CASE("tf bundle: a tensor without its bytes is hidden") {
  CHECK(why_hidden(tf_value(kFloat, {2}, 0, 8), {}) == "no file m.data-00000-of-00001 is beside the index");
  CHECK(why_hidden(tf_value(kFloat, {2}, 0, 8), {{"m.data-00000-of-00001", "short"}}) ==
        "expected 8 bytes at 0 of m.data-00000-of-00001, got a file of 5 bytes");
  CHECK(why_hidden(tf_value(kFloat, {2}, UINT64_MAX - 3, 8)).starts_with("expected 8 bytes at 1844"));
  CHECK(why_hidden(tf_value(kFloat, {2}, 0, UINT64_MAX)).starts_with("expected 1844"));
  CHECK(why_hidden(tf_value(kFloat, {2}, 0, 12)) == "expected 8 bytes for its shape [2], got 12");
  CHECK(why_hidden(tf_value(kFloat, {1ULL << 62U, 8}, 0, 8)).find("[4611686018427387904") != std::string::npos);
  CHECK(why_hidden(tf_value(kFloat, {UINT64_MAX}, 0, 8)).find("[18446744073709551615") != std::string::npos);
  CHECK(why_hidden(tf_value(kFloat, Shape(33, 1), 0, 4)) == "expected at most 32 dimensions, got more");
  const Layout other = parse(tf_index({{"w\xff", tf_value(kFloat, {2}, 0, 8)}, {"x", tf_value(kFloat, {2}, 0, 8)}}));
  CHECK(other.tensors.size() == 1);
  CHECK(other.hidden.size() == 1);
}

TEST_CASE("tf bundle: the keys of slices are those of TensorFlow") {
  const auto key = [](std::string_view name, const Shape& begin, const Shape& length) {
    return slice_key(name, {begin, length});
  };
  using namespace std::string_literals;
  CHECK(key("w", {0}, {BundleSlice::kWhole}) == "\0w\0\1\1\1\x80\x7f"s);
  CHECK(key("w", {63}, {64}) == "\0w\0\1\1\1\xbf\xc0\x40"s);
  CHECK(key("w", {8191}, {8192}) == "\0w\0\1\1\1\xdf\xff\xe0\x20\0"s);
  CHECK(key("w", {1ULL << 40U}, {INT64_MAX}) == "\0w\0\1\1\1\xfd\0\0\0\0\0\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff"s);
  CHECK(key("a\0b\xff"s, {}, {}) ==
        "\0a\0\xff"
        "b\xff\0\0\1\0"s);
  CHECK(small_key("w", 2, 2) == key("w", {2}, {2}));
}

TEST_CASE("tf bundle: a partitioned tensor is one tensor") {
  const Layout layout = parse(tf_index(sliced()));
  const FoundTensor& rows = only(layout);
  CHECK(rows.name == "w");
  CHECK(rows.shape == Shape{4});
  CHECK(rows.grid.empty());
  REQUIRE(rows.parts.size() == 2);
  CHECK(rows.parts[0].offset == 8);
  CHECK(rows.parts[1].offset == 100);

  const auto column = [](std::uint64_t begin, std::uint64_t length) {
    return slice_key("c", {{0, begin}, {BundleSlice::kWhole, length}});
  };
  const std::string whole = pb_bytes(1, "");
  const auto slice = [&](std::uint64_t begin, std::uint64_t length) {
    return pb_bytes(7, whole + pb_bytes(1, pb_varint(1, begin) + pb_varint(2, length)));
  };
  const Layout columns = parse(tf_index({{column(0, 100), tf_value(kFloat, {2, 100}, 0, 800)},
                                         {column(100, 5), tf_value(kFloat, {2, 5}, 900, 40)},
                                         {"c", tf_value(kFloat, {2, 105}, 0, 0) + slice(100, 5) + slice(0, 100)}}));
  const FoundTensor& boxes = only(columns);
  CHECK(boxes.grid == Borders{0, 2, 0, 100, 105});
  REQUIRE(boxes.parts.size() == 2);
  CHECK(boxes.parts[0].length == 800);
  CHECK(boxes.parts[1].offset == 900);
}

TEST_CASE("tf bundle: slices that do not fit together hide their tensor") {
  const auto without = [](std::size_t number) {
    TfEntries entries = sliced();
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(number));
    return parse(tf_index(entries));
  };
  CHECK(why_hidden(without(0)) == "a slice of it is missing");
  CHECK(why_hidden(without(1)) == "a slice of it is missing");
  CHECK(without(2).tensors.empty());  // slices of no tensor
  const auto with = [](const std::string& value) {
    TfEntries entries = sliced();
    entries.back().second = value;
    return why_hidden(parse(tf_index(entries)));
  };
  const std::string whole = tf_value(kFloat, {4}, 0, 0);
  CHECK(with(whole + tf_slice({{0, 2}})) == "expected borders that end at 4, got 2");
  CHECK(with(whole + tf_slice({{2, 2}}) + tf_slice({{2, 2}})).find("overlap") != std::string::npos);
  CHECK(with(whole + tf_slice({{0, 2}, {0, 1}})) == "a slice has other dimensions than the tensor");
  CHECK(with(whole + tf_slice({{0, 5}})) == "a slice lies outside of the tensor");
  CHECK(with(whole + tf_slice({{UINT64_MAX, 2}})) == "a slice lies outside of the tensor");
  CHECK(with(whole + tf_slice({{1, UINT64_MAX - 1}})) == "a slice lies outside of the tensor");
  CHECK(with(tf_value(2, {4}, 0, 0) + tf_slice({{0, 2}})) == "a slice has another type or shape");
  CHECK(why_hidden(parse(tf_index(sliced(4)))) == "a slice has other bytes than its shape needs");
  CHECK(why_hidden(parse(tf_index(sliced()), {})) == "no file m.data-00000-of-00001 is beside the index");
}

TEST_CASE("tf bundle: tables that lie are opaque") {
  const std::string header = tf_item(0, "", tf_header());
  const std::string w = tf_value(kFloat, {2}, 0, 8);
  const auto opaque = [&](const std::string& block) { return why_opaque(tf_table({block})); };
  SUBCASE("the index block names itself") {
    std::string index = tf_block({{"k", tf_handle(0, 14)}});
    REQUIRE(index.size() == 14);
    CHECK(why_opaque(tf_sealed(index) + tf_footer(0, 14)).starts_with("table: the block of 14 bytes at 0 ends after"));
  }
  SUBCASE("a block that is named twice") {
    const std::string block = tf_block({{"", tf_header()}});
    const std::string index = tf_block({{"a", tf_handle(0, block.size())}, {"b", tf_handle(0, block.size())}});
    const std::string sealed = tf_sealed(block);
    CHECK(why_opaque(sealed + tf_sealed(index) + tf_footer(sealed.size(), index.size())) ==
          "table: the block at 0 overlaps the one before");
  }
  SUBCASE("counts of restarts") {
    CHECK(opaque(header + le32(0) + le32(UINT32_MAX))
              .starts_with("table: expected a block of at least 17179869184 bytes"));
    CHECK(opaque(header + le32(UINT32_MAX - 1)).starts_with("table: expected a block of at least 17179869180 bytes"));
    CHECK(opaque("abc").starts_with("table: expected a count of restarts"));
  }
  SUBCASE("keys and lengths") {
    const std::string end = le32(0) + le32(1);
    CHECK(opaque(tf_item(1, "", "") + end) == "table: a key shares 1 bytes with a key of 0 bytes");
    CHECK(opaque(header + tf_item(0, "w", w) + tf_item(2, "x", w) + end) ==
          "table: a key shares 2 bytes with a key of 1 bytes");
    CHECK(opaque(header + tf_item(0, "w", w) + tf_item(0, "a", w) + end) ==
          "table: a key does not come after the key before it");
    CHECK(opaque(header + tf_item(0, "w", w) + tf_item(1, "", w) + end) ==
          "table: a key does not come after the key before it");
    CHECK(opaque(header + pb_number(0) + pb_number(1) + pb_number(UINT32_MAX) + "w" + end)
              .starts_with("table: expected a key and a value of 4294967296 bytes"));
    CHECK(opaque(header + pb_number(0) + pb_number(UINT64_MAX) + end) ==
          "table: expected three numbers of 32 bits before a key");
    CHECK(opaque(header + std::string(11, '\xff') + end) == "table: expected three numbers of 32 bits before a key");
  }
  SUBCASE("footers") {
    CHECK(why_opaque("").starts_with("table: expected at least 48 bytes"));
    CHECK(why_opaque(std::string(100, 'x')) ==
          "table: expected a magic number at the end of the file, got other bytes");
    CHECK(why_opaque(tf_footer(UINT64_MAX, UINT64_MAX)).starts_with("table: the block of"));
    CHECK(why_opaque(tf_footer(0, UINT64_MAX - 4)).starts_with("table: the block of"));
    CHECK(why_opaque(std::string(40, '\xff') + tf_footer(0, 0).substr(40)) ==
          "table: expected the places of two blocks in the footer");
  }
  SUBCASE("compression and checksums") {
    std::string index = tf_index({{"w", w}});
    index[3] ^= 1;
    CHECK(why_opaque(index) == "table: the block at 0 does not have its checksum");
    const std::string places = tf_block({{"k", tf_handle(0, 10)}});
    const std::string packed = tf_sealed(std::string(10, 'x'), 1);
    CHECK(why_opaque(packed + tf_sealed(places) + tf_footer(packed.size(), places.size())) ==
          "table: the block at 0 is compressed");
  }
}

TEST_CASE("tf bundle: entries that lie make the index opaque") {
  const std::string w = tf_value(kFloat, {2}, 0, 8);
  CHECK(why_opaque(tf_table({tf_block({})})) == "tf bundle: expected a header, got no entry");
  CHECK(why_opaque(tf_table({tf_block({{"w", w}})})) == "tf bundle: expected a header, got another entry");
  CHECK(why_opaque(tf_table({tf_block({{"", tf_header() + pb_varint(2, 1)}})})) ==
        "tf bundle: expected little-endian data, got other data");
  CHECK(why_opaque(tf_index({{"w", tf_value(kFloat, {2}, 0, 8, 1)}})) == "tf bundle: expected a shard below 1, got 1");
  CHECK(why_opaque(tf_index({{small_key("w", 0, 1), tf_value(kFloat, {1}, 0, 4, 7)}})) ==
        "tf bundle: expected a shard below 1, got 7");
  CHECK(why_opaque(tf_index({{"w", tf_value(kFloat, {2}, 0, 8, UINT64_MAX)}})).find("shard below 1") !=
        std::string::npos);
  CHECK(why_opaque(tf_index({{"w", w}}, 0)) == "tf bundle: expected a shard below 0, got 0");
  CHECK(why_opaque(tf_index({{"w", "\x08"}})).starts_with("protobuf: expected a number"));
  CHECK(why_opaque(tf_index({{"w", pb_key(2, 2) + pb_number(100)}})).starts_with("protobuf: expected at most 0 bytes"));
  CHECK(why_opaque(tf_index({{"w", pb_key(0, 0) + "1"}})).starts_with("protobuf: expected a field from 1"));
  CHECK(why_opaque(tf_index({{"w", "\x4b\x4c"}})).starts_with("protobuf: expected no group"));
}

TEST_CASE("tf bundle: a small index does not take much memory") {
  // One name of 4000 bytes, which 10,000 entries share.
  TfEntries entries;
  const std::string name(4000, 'n');
  for (int i = 10'000; i < 20'000; ++i) entries.emplace_back(std::to_string(i).insert(0, name), pb_varint(3, 0));
  const std::string index = tf_index(entries);
  MemoryGroup group("m.index", index, one_data());
  reset_allocations();
  const auto layout = parse_file("dir/m.index", group);
  CHECK(allocations().largest < index.size() + limits::kHiddenTensorsMax * 2 * sizeof(HiddenTensor));
  REQUIRE(layout.ok());
  CHECK(layout->hidden.size() == limits::kHiddenTensorsMax);
  CHECK(layout->hidden_more == 10'000 - limits::kHiddenTensorsMax);
  TfEntries longer;
  const std::string longest(60'000, 'n');
  for (int i = 10'000; i < 13'000; ++i) longer.emplace_back(std::to_string(i).insert(0, longest), "");
  CHECK(why_opaque(tf_index(longer)) == "table: expected keys of at most 134217728 bytes together, got more");
}

TEST_CASE("tf bundle: an index that is cut or changed has no tensor at another place") {
  TfEntries entries = sliced();
  entries.emplace_back("x/y", tf_value(kFloat, {2, 3}, 200, 24));
  const std::string index = tf_index(entries);
  REQUIRE(parse(index).tensors.size() == 2);
  for (std::size_t length = 0; length < index.size(); ++length) CHECK(parse(index.substr(0, length)).tensors.empty());
  for (std::size_t at = 0; at < index.size(); ++at)
    for (const int bit : {1, 0x80}) {
      CAPTURE(at);
      std::string changed = index;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      const Layout layout = parse(changed);
      for (const FoundTensor& tensor : layout.tensors)
        for (const TensorPart& part : tensor.parts) CHECK(part.offset + part.length <= 6000);
    }
}
