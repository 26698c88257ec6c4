// HDF5 files that no writer makes. Each would loop, allocate, or read elsewhere in a reader that trusts them.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>

#include "allocation.h"
#include "base/limits.h"
#include "builders.h"
#include "format/hdf5/hdf5.h"
#include "hdf5_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::uint64_t kHuge = 1ULL << 62U;

std::string contiguous(std::uint64_t length = 24) {
  return h5_contiguous(H5File::kData, length);
}

std::string why_hidden(const H5File& file) {
  const Layout layout = hdf5_layout(file.bytes());
  CHECK(layout.format == "hdf5");
  CHECK(layout.tensors.empty());
  return hdf5_hidden_why(layout, "w");
}

std::string why_hidden(const std::vector<std::string>& messages) {
  return why_hidden(H5File().dataset(messages));
}

std::string why_opaque(const H5File& file) {
  return hdf5_opaque(file.bytes());
}

// A node of a B-tree of version 1, with these entries.
std::string tree_node(unsigned type, unsigned level, std::size_t count, const std::string& entries) {
  return "TREE" + little_endian(type, 1) + little_endian(level, 1) + le16(count) + le64(UINT64_MAX) + le64(UINT64_MAX) +
         entries;
}

// A key of a chunk's tree, and the address behind it.
std::string chunk_entry(const std::vector<std::uint64_t>& begin, std::uint64_t at, std::uint64_t bytes = 24) {
  std::string entry = le32(bytes) + le32(0);
  for (const std::uint64_t one : begin) entry += le64(one);
  return entry + le64(0) + le64(at);
}

H5File chunked(const std::string& node, const std::vector<std::uint64_t>& dimensions = {2, 3, 4},
               const std::vector<std::uint64_t>& shape = {4, 3}) {
  return H5File()
      .dataset({h5_space(shape), h5_float_type(), h5_chunked(H5File::kSpare, dimensions)})
      .put(H5File::kSpare, node);
}

// A group with a symbol table: a name heap at kSpare, its names at kSpare + 64, a tree at kSpare + 256.
H5File old_group(const std::string& tree, std::uint64_t names_length = 16) {
  return H5File()
      .put(H5File::kRoot, h5_header({h5_message(0x11, le64(H5File::kSpare + 256) + le64(H5File::kSpare))}))
      .put(H5File::kSpare, "HEAP" + le32(0) + le64(names_length) + le64(0) + le64(H5File::kSpare + 64))
      .put(H5File::kSpare + 64, std::string("\0w\0xxxxxxxxxxxxx", 16))
      .put(H5File::kSpare + 256, tree)
      .put(H5File::kDataset, h5_header({h5_space({2, 3}), h5_float_type(), contiguous()}));
}

std::string symbols(std::uint64_t count, std::uint64_t name) {
  return "SNOD" + le16(1) + le16(count) + le64(name) + le64(H5File::kDataset) + std::string(24, '\0');
}

std::string symbol_leaf(std::uint64_t at) {
  return tree_node(0, 0, 1, le64(0) + le64(at));
}

constexpr std::uint64_t kSymbols = H5File::kSpare + 512;

}  // namespace

TEST_CASE("hdf5: the files of these tests are sound where nothing is changed") {
  const Layout plain = hdf5_layout(H5File().dataset({h5_space({2, 3}), h5_float_type(), contiguous()}).bytes());
  REQUIRE(plain.tensors.size() == 1);
  CHECK(plain.tensors[0].name == "w");
  CHECK(plain.tensors[0].dtype == DType::f32);
  CHECK(plain.tensors[0].shape == Shape{2, 3});
  CHECK(range_of(plain.tensors[0]) == Range{H5File::kData, 24});
  const Layout rows =
      hdf5_layout(chunked(tree_node(1, 0, 2, chunk_entry({0, 0}, 5000) + chunk_entry({2, 0}, H5File::kData))).bytes());
  REQUIRE(rows.tensors.size() == 1);
  CHECK(rows.tensors[0].parts.size() == 2);
  CHECK(rows.tensors[0].parts[1].offset == H5File::kData);
  const Layout group = hdf5_layout(old_group(symbol_leaf(kSymbols)).put(kSymbols, symbols(1, 1)).bytes());
  CHECK(group.tensors.size() == 1);
}

TEST_CASE("hdf5: superblocks that lie") {
  CHECK(why_opaque(H5File().put(64, le64(0))) ==
        "hdf5: object header at 0: expected version 1 or 2, got other bytes");  // the root is the superblock
  CHECK(why_opaque(H5File().put(64, le64(kHuge))).ends_with("is past the end"));
  CHECK(why_opaque(H5File().put(64, le64(UINT64_MAX - 8))).ends_with("is past the end"));
  CHECK(why_opaque(H5File()).ends_with("expected version 1 or 2, got other bytes"));
  CHECK(why_opaque(H5File().put(8, "\4")) == "hdf5: superblock: expected a version from 0 to 3, got 4");
  CHECK(why_opaque(H5File().put(13, "\3")).find("2, 4 or 8 bytes") != std::string::npos);
  CHECK(why_opaque(H5File().put(24, le64(7))).find("expected 0 as its place") != std::string::npos);
  CHECK(why_opaque(H5File().put(40, le64(kHuge))).starts_with("hdf5: the file is truncated"));
}

TEST_CASE("hdf5: object headers that lie") {
  const std::string loop = h5_message(0x10, le64(H5File::kSpare) + le64(24));
  CHECK(why_opaque(H5File().put(H5File::kRoot, h5_header({loop})).put(H5File::kSpare, loop)) ==
        "hdf5: header continuation at 2048 is used twice");
  CHECK(why_opaque(H5File().put(H5File::kRoot, h5_header({h5_message(0x10, le64(4128) + le64(kHuge))})))
            .starts_with("hdf5: header continuation at 4128"));
  CHECK(why_opaque(H5File().put(H5File::kRoot, h5_header({h5_message(0x10, le64(8000) + le64(1000))}))) ==
        "hdf5: header continuation at 8000 is past the end");
  std::string longer = h5_header({h5_message(6, "short")});
  longer[18] = '\x7f';
  CHECK(why_opaque(H5File().put(H5File::kRoot, longer)).find("is longer than its header") != std::string::npos);
  CHECK(why_opaque(H5File().put(H5File::kRoot, h5_header({h5_link("w", 8190)}))) ==
        "hdf5: object header at 8190 is past the end");
}

TEST_CASE("hdf5: groups that lie") {
  const auto link_root = [](std::string_view name) { return h5_link(name, H5File::kRoot); };
  const Layout self = hdf5_layout(H5File().put(H5File::kRoot, h5_header({link_root("a"), link_root("b")})).bytes());
  CHECK(self.tensors.empty());
  CHECK(hdf5_hidden_why(self, "b") == "a link to a group that it is in");

  // Each group names the next one twice, so that there are 2^40 paths.
  H5File wide;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t next = H5File::kRoot + (i + 1) * 80;
    wide.put(H5File::kRoot + i * 80, h5_header({h5_link("a", next), h5_link("b", next)}));
  }
  wide.put(H5File::kRoot + 40ULL * 80, h5_header({h5_space({2, 3}), h5_float_type(), contiguous()}));
  CHECK(why_opaque(wide).ends_with("are more than a file of this size has"));

  H5File deep;
  for (std::uint64_t i = 0; i < 70; ++i)
    deep.put(H5File::kRoot + i * 48, h5_header({h5_link("a", H5File::kRoot + (i + 1) * 48)}));
  CHECK(why_opaque(deep) == "hdf5: expected groups nested at most 64 deep, got more");

  CHECK(why_opaque(old_group(tree_node(0, 1, 1, le64(0) + le64(H5File::kSpare + 256)))) ==
        "hdf5: tree node at 2304 is used twice");
  CHECK(why_opaque(old_group(tree_node(0, 2, 1, le64(0) + le64(kSymbols))).put(kSymbols, tree_node(0, 0, 0, ""))) ==
        "hdf5: tree node at 2560: expected level 1, got 0");
  CHECK(why_opaque(old_group(tree_node(0, 200, 1, ""))).find("expected level 64, got 200") != std::string::npos);
  CHECK(why_opaque(old_group(tree_node(1, 0, 1, ""))).find("expected type 0, got 1") != std::string::npos);
  CHECK(
      why_opaque(old_group(symbol_leaf(kSymbols)).put(kSymbols, symbols(1, 16))).ends_with("a name is past its heap"));
  CHECK(why_opaque(old_group(symbol_leaf(kSymbols), 8).put(kSymbols, symbols(1, 4)))
            .ends_with("a name is past its heap"));
  CHECK(why_opaque(old_group(symbol_leaf(kSymbols)).put(kSymbols, symbols(40'000, 1))).ends_with("is past the end"));
  CHECK(why_opaque(old_group(symbol_leaf(kSymbols), kHuge)).starts_with("hdf5: name heap at 2112"));
}

TEST_CASE("hdf5: datasets that lie are hidden") {
  CHECK(why_hidden({h5_space({1ULL << 60U}), h5_float_type(), contiguous()}) ==
        "expected 4611686018427387904 bytes for its shape [1152921504606846976], got 24");
  CHECK(why_hidden({h5_space({1ULL << 40U, 1ULL << 40U}), h5_float_type(), contiguous()}).find("is too large") !=
        std::string::npos);
  CHECK(why_hidden({h5_space({1ULL << 40U}), h5_float_type(), contiguous(1ULL << 42U)}) ==
        "its 4398046511104 bytes at 4096 are past the end");
  CHECK(why_hidden({h5_space({7}), h5_float_type(), contiguous()}) == "expected 28 bytes for its shape [7], got 24");
  CHECK(why_hidden({h5_space(std::vector<std::uint64_t>(33, 1)), h5_float_type(), contiguous(4)})
            .starts_with("its dataspace: expected at most 32 dimensions"));
  std::string no_size = h5_float_type();
  no_size.replace(12, 4, le32(0));
  CHECK(why_hidden({h5_space({6}), no_size, contiguous()}) == "its datatype is broken");
  CHECK(why_hidden({h5_space({6}), h5_message(3, "\x11"), contiguous()}) == "its datatype is broken");
  CHECK(why_hidden({h5_float_type(), contiguous()}) == "it has no dataspace of its own");
  CHECK(why_hidden({h5_space({6}), contiguous()}) == "it has no datatype");
  CHECK(why_hidden({h5_space({6}), h5_float_type(), h5_message(8, "\x09\1")}).find("expected a version from 1 to 5") !=
        std::string::npos);
  CHECK(why_hidden({h5_space({6}), h5_float_type(), h5_message(8, "\3\1")}) == "its layout is shorter than its fields");
  CHECK(why_hidden({h5_space({6}), h5_float_type(), h5_message(8, "\3\7")}) == "its layout is of an unknown class");
  CHECK(why_hidden({h5_space({6}), h5_float_type(), h5_message(8, std::string("\3\0\30\0", 4))}) ==
        "its layout is shorter than its fields");  // compact, with 24 bytes that are not there
}

TEST_CASE("hdf5: shared messages, filters and attributes that lie") {
  const std::string own_type = h5_message(3, std::string("\3\2", 2) + le64(H5File::kDataset), 2);
  CHECK(why_hidden({h5_space({6}), own_type, contiguous()}) == "object header at 1024 is used twice");
  const std::string other_type = h5_message(3, std::string("\3\2", 2) + le64(H5File::kSpare), 2);
  CHECK(why_hidden(H5File()
                       .dataset({h5_space({6}), other_type, contiguous()})
                       .put(H5File::kSpare, h5_header({h5_message(3, std::string("\3\2", 2) + le64(H5File::kDataset),
                                                                  2)}))) == "its datatype is in no message of its own");
  const std::string filters = h5_message(11, std::string("\1\xff", 2) + std::string(38, '\0'));
  CHECK(why_hidden({h5_space({4, 3}), h5_float_type(), filters, h5_chunked(H5File::kSpare, {2, 3, 4})}) ==
        "expected at most 32 filters, got 255");
  const std::string short_filters = h5_message(11, std::string("\1\3", 2) + std::string(6, '\0'));
  CHECK(why_hidden({h5_space({4, 3}), h5_float_type(), short_filters, h5_chunked(H5File::kSpare, {2, 3, 4})}) ==
        "its filters are longer than their message");

  // An opaque type whose attribute is a text of variable length.
  const std::string opaque = h5_message(3, std::string("\x15\0\0\0", 4) + le32(2));
  const auto attribute = [](std::uint64_t length) {
    const std::string type = "\x19" + little_endian(1, 3) + le32(16) + h5_float_type().substr(8),
                      space = "\2" + std::string(3, '\0');
    return h5_message(12, std::string("\2\0", 2) + le16(6) + le16(type.size()) + le16(space.size()) +
                              std::string("dtype\0", 6) + type + space + le32(length) + le64(H5File::kSpare) + le32(1));
  };
  const auto heap = [](std::uint64_t length) {
    return "GCOL" + le32(1) + le64(128) + le16(1) + std::string(6, '\0') + le64(length) + "bfloat16";
  };
  const auto file = [&](std::uint64_t text, std::uint64_t object) {
    return H5File().dataset({h5_space({2}), opaque, contiguous(4), attribute(text)}).put(H5File::kSpare, heap(object));
  };
  const Layout sound = hdf5_layout(file(8, 8).bytes());
  REQUIRE(sound.tensors.size() == 1);
  CHECK(sound.tensors[0].dtype == DType::bf16);
  CHECK(why_hidden(file(9, 8)) == "opaque bytes");
  CHECK(why_hidden(file(8, 4096)) == "opaque bytes");
  CHECK(why_hidden(file(8, UINT64_MAX)) == "opaque bytes");
}

TEST_CASE("hdf5: chunks that lie are hidden") {
  const std::string good_node = tree_node(1, 0, 2, chunk_entry({0, 0}, 5000) + chunk_entry({2, 0}, H5File::kData));
  CHECK(why_hidden(chunked(tree_node(1, 1, 1, chunk_entry({0, 0}, H5File::kSpare)))) ==
        "tree node at 2048 is used twice");
  CHECK(why_hidden(chunked(tree_node(1, 0, 60'000, ""))) == "tree node at 2072 is past the end");
  CHECK(why_hidden(chunked(good_node, {})) == "its chunks have elements of another size");
  CHECK(why_hidden(chunked(good_node, {4})) == "expected chunks of 2 dimensions, got 0");
  CHECK(
      why_hidden(chunked(good_node, std::vector<std::uint64_t>(34, 4))).starts_with("expected at most 33 dimensions"));
  CHECK(why_hidden(chunked(good_node, {2, 0, 4})) == "its chunks have a dimension of 0");
  CHECK(why_hidden(chunked(good_node, {2, 3, 0})) == "its chunks have elements of another size");
  CHECK(why_hidden(chunked(good_node, {1, 1, 4}, {1ULL << 30U, 1ULL << 20U})) == "it has more than 1048576 chunks");
  const auto one = [&](const std::string& entry) { return why_hidden(chunked(tree_node(1, 0, 1, entry))); };
  CHECK(one(chunk_entry({1, 0}, H5File::kData)) == "one of its chunks begins within another");
  CHECK(one(chunk_entry({4, 0}, H5File::kData)) == "one of its chunks begins after its shape");
  CHECK(one(chunk_entry({0, 0}, H5File::kData, 23)) == "expected 24 bytes of a chunk, got 23");
  CHECK(one(chunk_entry({0, 0}, 8180)) == "its 24 bytes at 8180 are past the end");
  CHECK(one(chunk_entry({0, 0}, H5File::kData)) == "some chunks were never written: the fill value");
  const std::string first = chunk_entry({0, 0}, H5File::kData);
  CHECK(why_hidden(chunked(tree_node(1, 0, 2, first + first))) == "it has one of its chunks twice");
  CHECK(why_hidden(chunked(tree_node(1, 0, 3, first + first + first))) == "it has one of its chunks twice");
}

TEST_CASE("hdf5: a small file cannot make the reader allocate much") {
  const std::vector<H5File> files = {
      old_group(symbol_leaf(kSymbols), kHuge),
      H5File().put(H5File::kRoot, h5_header({h5_message(0x10, le64(0) + le64(60U << 20U))})),
      H5File().dataset({h5_space({1ULL << 60U}), h5_float_type(), contiguous()}),
      chunked("", {1, 1, 4}, {1ULL << 10U, 1ULL << 10U}),
      chunked(tree_node(1, 0, 65'535, "")),
  };
  for (const H5File& file : files) {
    MemorySource source(file.bytes());
    reset_allocations();
    auto layout = parse_file("m.h5", "m.h5", source);
    const Allocations used = allocations();
    REQUIRE(layout.ok());
    CHECK(layout->tensors.empty());
    CHECK(used.largest <= 16'384);
    CHECK(used.total <= 65'536);
  }
}

TEST_CASE("hdf5: the continuations of a header are bounded, also in a sparse file") {
  constexpr std::uint64_t kBlock = 64U << 20U, kBlocks = 16;
  class Sparse final : public ByteSource {
   public:
    explicit Sparse(std::string head) : head_(std::move(head)) {}
    std::uint64_t size() const override { return H5File::kSize + kBlocks * kBlock; }
    Status read(std::uint64_t offset, std::span<std::byte> out) override {
      std::ranges::fill(out, std::byte{0});
      const std::string_view rest = std::string_view(head_).substr(std::min<std::uint64_t>(offset, head_.size()));
      std::ranges::copy(std::as_bytes(std::span(rest.substr(0, out.size()))), out.begin());
      return {};
    }

   private:
    const std::string head_;
  };
  std::vector<std::string> messages;
  for (std::uint64_t i = 0; i < kBlocks; ++i)
    messages.push_back(h5_message(0x10, le64(H5File::kSize + i * kBlock) + le64(kBlock)));
  Sparse file(H5File().put(H5File::kRoot, h5_header(messages)).bytes());
  reset_allocations();
  const auto layout = read_hdf5(file);
  REQUIRE_FALSE(layout.ok());
  CHECK(layout.error().message.ends_with("expected headers of at most 67108864 bytes"));
  CHECK(allocations().total < 2 * kBlock);
}

TEST_CASE("hdf5: chunks beyond the bound of a file hide their dataset, and no other") {
  // Five datasets of 2^20 tiles each, at the same 4 MiB, and a dataset of one run.
  constexpr std::uint64_t kTiles = 1U << 20U;
  const std::string layout = std::string("\4\2\0\3\1\2\2\1\2", 9) + le64(H5File::kData);
  const std::string type = "\x10" + std::string(3, '\0') + le32(1) + le16(0) + le16(8);
  std::vector<std::string> links = {h5_link("run", H5File::kSpare)};
  const std::string tiles = h5_header({h5_space({2048, 2048}), h5_message(3, type), h5_message(8, layout)});
  constexpr std::uint64_t kApart = 128;
  REQUIRE(tiles.size() <= kApart);
  H5File file;
  for (std::uint64_t i = 0; i < 5; ++i) {
    links.push_back(h5_link(std::string(1, static_cast<char>('a' + i)), H5File::kDataset + i * kApart));
    file.put(H5File::kDataset + i * kApart, tiles);
  }
  file.put(H5File::kRoot, h5_header(links));
  file.put(H5File::kSpare, h5_header({h5_space({2, 3}), h5_float_type(), contiguous()}));
  MemorySource source(file.put(H5File::kData, std::string(4 * kTiles, 'x')).bytes());
  const Layout found = must(read_hdf5(source));
  CHECK(hdf5_tensor(found, "a") != nullptr);
  CHECK(hdf5_tensor(found, "run") != nullptr);
  CHECK(hdf5_hidden_why(found, "e") == "its chunks are more than a file of this size has");
}

TEST_CASE("hdf5: a tile takes little memory in any number of dimensions") {
  // 2^16 tiles of 4 bytes in 32 dimensions, one after the other, without an index.
  constexpr std::uint64_t kTiles = 1U << 16U, kRank = 32;
  std::vector<std::uint64_t> shape(kRank, 1);
  std::string tile(kRank, '\1');
  for (std::size_t i = 0; i < 16; ++i) shape[i] = i == 0 || i == 15 ? 3 : 2;
  tile[0] = tile[15] = '\2';
  const std::string layout = std::string("\4\2\0\x21\1", 5) + tile + "\1\2" + le64(H5File::kData);
  const std::string type = "\x10" + std::string(3, '\0') + le32(1) + le16(0) + le16(8);
  const std::string file = H5File()
                               .dataset({h5_space(shape), h5_message(3, type), h5_message(8, layout)})
                               .put(H5File::kData, std::string(4 * kTiles, 'x'))
                               .bytes();
  reset_allocations();
  const Layout found = hdf5_layout(file);
  REQUIRE(found.tensors.size() == 1);
  CHECK(found.tensors[0].parts.size() == 1);
  CHECK(found.tensors[0].grid.size() == 2 * kRank + 16);
  CHECK(allocations().total < file.size() + 512 * kTiles);
}
