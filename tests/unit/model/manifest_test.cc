#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "base/limits.h"
#include "base/sha256.h"
#include "model/manifest_codec.h"
#include "unit/model/models.h"

namespace weft {
namespace {

using testing::bert;
using testing::content;
using testing::file_of;
using testing::named;
using testing::opaque;

Manifest varied() {
  Manifest manifest;
  manifest.files.push_back(opaque("1_Pooling/config.json"));
  manifest.files.push_back(opaque("empty", 0));
  manifest.files.push_back(
      file_of("model.gguf", {{"blk.0.attn_q", DType::q4_k, {4, 512}}, {"rope", DType::f32, {}}}, "gguf"));
  manifest.files.back().metadata = {{"general.architecture", "llama"}, {"", ""}};
  manifest.files.push_back(file_of(
      "x.npy", {{"", DType::npy_other, {3}, "{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }"}}, "npy"));
  manifest.files.push_back(file_of("zero.safetensors", {{"none", DType::f32, {0, 7}}, {"some", DType::bf16, {1}}}));
  return manifest;
}

std::vector<std::byte> encoded(const Manifest& manifest) {
  auto bytes = encode_manifest(manifest);
  REQUIRE_MESSAGE(bytes.ok(), (bytes.ok() ? "" : bytes.error().message));
  return std::move(bytes).value();
}

TEST_CASE("only a file without a format says why it has no tensors") {
  File file = opaque("model.gguf");
  CHECK(why_no_tensors(file).empty());
  file.metadata = {{std::string(kNoTensors), "a reason"}};
  CHECK(why_no_tensors(file) == "a reason");
  CHECK(remark_on(file).empty());
  file.format = "safetensors";  // whose metadata is the publisher's own
  CHECK(why_no_tensors(file).empty());
  file.metadata = {{std::string(kGlobals), "os.system"}};
  CHECK(globals_of(file, kGlobals).empty());
  for (const char* format : {"torch zip", "dcp", ""}) {
    file.format = format;
    CHECK(globals_of(file, kGlobals) == "os.system");
    CHECK(globals_of(file, kOtherGlobals).empty());
  }
}

TEST_CASE("a manifest survives encoding") {
  for (const Manifest& manifest : {Manifest{}, varied(), bert(12)}) {
    auto back = decode_manifest(encoded(manifest));
    REQUIRE(back.ok());
    CHECK(back.value() == manifest);
  }
}

TEST_CASE("equal manifests encode to equal bytes, different ones to different") {
  CHECK(encoded(varied()) == encoded(varied()));
  Manifest other = varied();
  other.files[0].extents[0].id.root.bytes[31] ^= 1U;
  CHECK(encoded(other) != encoded(varied()));
  auto back = decode_manifest(encoded(varied()));
  REQUIRE(back.ok());
  CHECK(encoded(back.value()) == encoded(varied()));
}

TEST_CASE("the encoding is fixed: stored manifests are named by it") {
  Manifest manifest;
  manifest.files.push_back({"a", 3, "f", {{0, content(3, 1)}}, {{"t", DType::u8, {3}, 0, ""}}, {{"k", "v"}}});
  CHECK(to_hex(sha256(encoded(manifest))) == "e2e0634595081481b7c3dddd511e1665637aa284be6e09f374336b411942d0dd");
  manifest.files[0].sha256 = content(3, 2).root;
  CHECK(to_hex(sha256(encoded(manifest))) == "566d85f41108732b1bb44bc0a87da0c74b3d51b0be90b1fc62d725720572ff1c");
}

TEST_CASE("published files have a SHA-256, and no other file has one") {
  Manifest manifest = varied();
  for (File& file : manifest.files) file.sha256 = content(0, file.size).root;
  auto back = decode_manifest(encoded(manifest));
  REQUIRE(back.ok());
  CHECK(back.value() == manifest);
  Manifest dataset{{opaque("large")}, {}, VersionKind::dataset};
  for (const FileRole role : {FileRole::bundle, FileRole::file_table, FileRole::sums})
    dataset.files.emplace_back(opaque("", 64)).role = role;
  CHECK(decode_manifest(encoded(dataset)).value() == dataset);
  for (std::size_t file = 1; file < dataset.files.size(); ++file) {
    Manifest bad = dataset;
    bad.files[file].sha256 = Digest{};
    CHECK_FALSE(encode_manifest(bad).ok());
  }
}

TEST_CASE("hidden tensors survive encoding, and are bounded") {
  Manifest manifest = varied();
  File& file = manifest.files[0];
  file.hidden = {{"w", 7, "compressed", {}, {}}, {"", 0, "no data", DType::f32, {2, 3}}};
  auto back = decode_manifest(encoded(manifest));
  REQUIRE(back.ok());
  CHECK(back.value() == manifest);
  CHECK(encoded(manifest) != encoded(varied()));
  file.hidden_more = 1;  // although the list is not full
  CHECK_FALSE(encode_manifest(manifest).ok());
  file.hidden.resize(limits::kHiddenTensorsMax, file.hidden[0]);
  CHECK(decode_manifest(encoded(manifest)).value() == manifest);
  file.hidden.push_back(file.hidden[0]);
  CHECK_FALSE(encode_manifest(manifest).ok());
  for (const HiddenTensor& bad :
       {HiddenTensor{"w", 0, "", {}, {}}, HiddenTensor{"\xff", 0, "why", {}, {}},
        HiddenTensor{"w", 0, "why", DType::npy_other, {}}, HiddenTensor{"w", 0, "why", {}, {1}},
        HiddenTensor{"w", 0, "why", static_cast<DType>(200), {}},
        HiddenTensor{"w", 0, std::string(limits::kHiddenReasonMax + 1, 'x'), {}, {}}}) {
    Manifest wrong = varied();
    wrong.files[0].hidden = {bad};
    CHECK_FALSE(encode_manifest(wrong).ok());
  }
}

TEST_CASE("the sums of small files are digests, and stand beside a file table") {
  Manifest manifest{{opaque("", 64), opaque("", 64)}, {}, VersionKind::dataset};
  manifest.files[0].role = FileRole::file_table;
  manifest.files[1].role = FileRole::sums;
  CHECK(encode_manifest(manifest).ok());
  Manifest half = manifest;
  half.files[1] = opaque("", 65);
  half.files[1].role = FileRole::sums;
  CHECK_FALSE(encode_manifest(half).ok());
  Manifest twice = manifest;
  twice.files.push_back(twice.files.back());
  CHECK_FALSE(encode_manifest(twice).ok());
  Manifest alone = manifest;
  alone.files.erase(alone.files.begin());
  CHECK_FALSE(encode_manifest(alone).ok());
}

TEST_CASE("a published file has x bits, and no other bits of a mode") {
  Manifest manifest = varied();
  const auto before = encoded(manifest);
  for (const unsigned bits : {0100U, 0111U, 0011U}) {
    manifest.files[0].execute = execute_bits(0640U | bits);
    const auto bytes = encoded(manifest);
    CHECK(bytes != before);
    CHECK(decode_manifest(bytes).value().files[0].execute == bits);
  }
  for (const unsigned bits : {0200U, 0004U, 0113U}) {
    manifest.files[0].execute = static_cast<std::uint8_t>(bits);
    CHECK(encode_manifest(manifest).error().code == Errc::invalid);
    CHECK(decode_manifest(encode_unchecked(manifest).value()).error().code == Errc::corrupt);
  }
}

TEST_CASE("empty directories are content, and lie apart from files and from each other") {
  Manifest manifest = varied();
  const auto before = encoded(manifest);
  manifest.directories = {"1", "1_Pooling/a", "z/b/c", "z/d"};
  CHECK(encoded(manifest) != before);
  CHECK(decode_manifest(encoded(manifest)).value() == manifest);
  using Paths = std::vector<std::string>;
  for (const Paths& paths :
       {Paths{"b", "a"}, Paths{"a", "a"}, Paths{""}, Paths{"a/../b"}, Paths{"/a"}, Paths{"1_Pooling"}, Paths{"empty"},
        Paths{"empty/a"}, Paths{"model.gguf/a/b"}, Paths{"a", "a-b", "a/b"}}) {
    manifest.directories = paths;
    CAPTURE(paths.back());
    CHECK(encode_manifest(manifest).error().code == Errc::invalid);
    CHECK(decode_manifest(encode_unchecked(manifest).value()).error().code == Errc::corrupt);
  }
}

TEST_CASE("bytes need not be aligned") {
  auto bytes = encoded(varied());
  for (std::size_t shift = 0; shift < 9; ++shift) {
    std::vector<std::byte> moved(shift);
    moved.insert(moved.end(), bytes.begin(), bytes.end());
    auto back = decode_manifest(std::span(moved).subspan(shift));
    REQUIRE(back.ok());
    CHECK(back.value() == varied());
  }
}

TEST_CASE("sums") {
  Manifest manifest = varied();
  CHECK(logical_bytes(manifest) == 10 + 0 + (64 + 4 * 288 + 4) + (64 + 24) + (64 + 2));
  CHECK(tensor_count(manifest) == 5);
  const File& gguf = manifest.files[2];
  CHECK(stored_bytes(gguf, gguf.tensors[0]) == 4 * 288);
  CHECK(stored_bytes(manifest.files[4], manifest.files[4].tensors[0]) == 0);
}

// Checks that a good manifest changed by `spoil` is refused, with `why`, both by the encoder and by the decoder.
void check_refused(std::string_view why, const std::function<void(Manifest&)>& spoil) {
  CAPTURE(why);
  Manifest manifest;
  manifest.files = {named("a/b.safetensors", {"u", "v", "w"}), named("c.safetensors", {"x"})};
  REQUIRE(encode_manifest(manifest).ok());
  spoil(manifest);
  auto encoding = encode_manifest(manifest);
  REQUIRE_FALSE(encoding.ok());
  CHECK(encoding.error().code == Errc::invalid);
  auto bytes = encode_unchecked(manifest);
  REQUIRE(bytes.ok());
  auto decoding = decode_manifest(bytes.value());
  REQUIRE_FALSE(decoding.ok());
  CHECK(decoding.error().code == Errc::corrupt);
  CAPTURE(decoding.error().message);
  CHECK(decoding.error().message.find(why) != std::string::npos);
  CHECK(decoding.error().message.find('\n') == std::string::npos);
}

TEST_CASE("paths that break their promises are refused") {
  check_refused("\"..\"", [](Manifest& m) { m.files[0].path = "../b"; });
  check_refused("relative path", [](Manifest& m) { m.files[0].path = ""; });
  check_refused("UTF-8", [](Manifest& m) { m.files[1].path.back() = static_cast<char>(0xff); });
  check_refused("in order", [](Manifest& m) { std::swap(m.files[0], m.files[1]); });
  check_refused("in order", [](Manifest& m) { m.files[1].path = m.files[0].path; });
  check_refused("\"a\" is the directory of", [](Manifest& m) { m.files = {opaque("a"), opaque("a/b")}; });
  check_refused("\"a/b\" is the directory of", [](Manifest& m) {
    m.files = {opaque("a/b"), opaque("a/b-"), opaque("a/b.c"), opaque("a/b/c/d")};
  });
}

TEST_CASE("paths of which one only looks like the other's directory are fine") {
  Manifest manifest{{opaque("a-b"), opaque("a.b"), opaque("a/b-/x"), opaque("a/b/c"), opaque("a/b/d"), opaque("ab")}};
  CHECK(encode_manifest(manifest).ok());
}

TEST_CASE("extents that do not tile their file are refused") {
  using Extents = std::vector<Extent>;
  auto spoil = [](const std::function<void(File&, Extents&)>& body) {
    return [body](Manifest& m) { body(m.files[0], m.files[0].extents); };
  };
  check_refused("extent 0: expected offset 0, got 1", spoil([](File&, Extents& e) { e[0].offset = 1; }));
  check_refused("extent 1: expected offset 64, got 65", spoil([](File&, Extents& e) { e[1].offset = 65; }));
  check_refused("expected bytes, got none", spoil([](File&, Extents& e) { e[0].id.length = 0; }));
  check_refused("expected offset", spoil([](File&, Extents& e) { e[0].id.length = 63; }));
  check_refused("does not fit in 64 bits", spoil([](File&, Extents& e) { e[3].id.length = UINT64_MAX; }));
  check_refused("expected extents of 137 bytes", spoil([](File& f, Extents&) { f.size += 1; }));
  check_refused("expected extents of 136 bytes",
                spoil([](File& f, Extents&) { f.extents.pop_back(), f.tensors.pop_back(); }));
  check_refused("expected files of at most", [](Manifest& m) {
    m.files = {opaque("a", limits::kVersionBytesMax), opaque("b", 1)};
  });
}

TEST_CASE("tensors that break their promises are refused") {
  using Tensors = std::vector<Tensor>;
  auto spoil = [](const std::function<void(Tensors&)>& body) {
    return [body](Manifest& m) { body(m.files[0].tensors); };
  };
  check_refused("an extent below 4, got 4", spoil([](Tensors& t) { t[2].extent = 4; }));
  check_refused("expected 24 bytes for shape [2, 3], got 64", spoil([](Tensors& t) { t[0].extent = 0; }));
  check_refused("expected 24 bytes for shape [2, 3], got 0", spoil([](Tensors& t) { t[0].extent = kNoExtent; }));
  check_refused("expected extent 2 or a later one, got 1", spoil([](Tensors& t) { t[2].extent = 1; }));
  check_refused("or a later one", spoil([](Tensors& t) { std::swap(t[0].extent, t[1].extent); }));
  check_refused("expected 0 bytes", spoil([](Tensors& t) { t[0].shape = {0}; }));
  check_refused("expected 48 bytes", spoil([](Tensors& t) { t[0].dtype = DType::f64; }));
  check_refused("unknown element type 0", spoil([](Tensors& t) { t[0].dtype = DType{0}; }));
  check_refused("unknown element type 254", spoil([](Tensors& t) { t[0].dtype = DType{254}; }));
  check_refused("more than 2^64 elements", spoil([](Tensors& t) { t[0].shape = {1ULL << 33U, 1ULL << 33U}; }));
  check_refused("more than 2^64 bytes", spoil([](Tensors& t) { t[0].shape = {1ULL << 62U}; }));
  check_refused("not whole", spoil([](Tensors& t) { t[0].dtype = DType::q4_0; }));
  check_refused("at most 32 dimensions, got 33", spoil([](Tensors& t) { t[0].shape = Shape(33, 1); }));
  check_refused("numpy description", spoil([](Tensors& t) { t[0].dtype = DType::npy_other; }));
  check_refused("at most 4096 bytes, got 4097", spoil([](Tensors& t) { t[0].name = std::string(4097, 'a'); }));
  check_refused("expected UTF-8", spoil([](Tensors& t) { t[0].name = "\xc0\x80"; }));
  check_refused("tensor \"u\" is there twice", spoil([](Tensors& t) { t[2].name = t[0].name; }));
}

TEST_CASE("tied tensors have one extent") {
  Manifest manifest{{named("a.safetensors", {"u", "v"})}};
  manifest.files[0].tensors[1].extent = 1;
  manifest.files[0].tensors[1].dtype = DType::i32;
  CHECK(encode_manifest(manifest).ok());
}

TEST_CASE("scattered tensors come back, and are content of their own") {
  Manifest manifest{{opaque("a", 100), named("b.safetensors", {"u", "v", "w"})}};
  std::vector<Tensor>& tensors = manifest.files[1].tensors;
  for (Tensor& tensor : tensors) tensor.extent = kNoExtent;
  tensors[0].runs = {{0, 0, 10, 8}, {1, 1, 0, 16}};
  tensors[1].runs = {{0, 0, 0, 24}};
  tensors[2].runs = {{1, 2, 0, 24}};
  tensors[2].strides = {1, 2};
  const auto back = decode_manifest(encoded(manifest));
  REQUIRE(back.ok());
  CHECK(*back == manifest);
  std::set<ContentId> contents;
  for (const Tensor& tensor : tensors) {
    CHECK(stored_bytes(manifest.files[1], tensor) == 24);
    contents.insert(tensor_content(manifest, manifest.files[1], tensor));
  }
  CHECK(contents.size() == 3);
  for (const ContentId& id : contents) CHECK(id.length == 24);
  manifest.files[0].extents[0].id = content(100, 7);
  CHECK_FALSE(contents.contains(tensor_content(manifest, manifest.files[1], tensors[1])));
  CHECK(contents.contains(tensor_content(manifest, manifest.files[1], tensors[2])));
}

TEST_CASE("tensors in boxes come back, and their grid makes another content") {
  Manifest manifest{{opaque("a", 100), named("b.safetensors", {"u", "v", "w"})}};
  std::vector<Tensor>& tensors = manifest.files[1].tensors;
  for (Tensor& tensor : tensors) tensor.extent = kNoExtent;
  tensors[0].runs = {{0, 0, 10, 8}, {1, 1, 0, 16}};
  tensors[0].grid = {0, 2, 0, 1, 3};
  tensors[1].runs = tensors[0].runs;
  tensors[2].runs = {{0, 0, 10, 16}, {1, 1, 0, 16}};
  tensors[2].grid = {0, 2, 0, 2, 4};
  const auto back = decode_manifest(encoded(manifest));
  REQUIRE(back.ok());
  CHECK(*back == manifest);
  std::set<ContentId> contents;
  for (const Tensor& tensor : tensors) {
    CHECK(stored_bytes(manifest.files[1], tensor) == 24);
    contents.insert(tensor_content(manifest, manifest.files[1], tensor));
  }
  CHECK(contents.size() == 3);
  const Digest outline = outline_of(manifest);
  tensors[1].grid = tensors[0].grid;
  CHECK(outline_of(manifest) != outline);
}

TEST_CASE("tensors of equal cells or memory in other shapes are other content") {
  // Tensors of both shapes have the same cells of 2 × 3, or the same strides, and their elements another order.
  const auto content_of = [](const Shape& shape, const Strides& strides, const Borders& grid) {
    Manifest manifest{{file_of("a.safetensors", {{"u", DType::u8, {24}}})}};
    Tensor& tensor = manifest.files[0].tensors[0];
    const auto extent = static_cast<std::uint32_t>(tensor.extent);
    tensor.shape = shape;
    tensor.strides = strides;
    tensor.grid = grid;
    tensor.extent = kNoExtent;
    tensor.runs = {{0, extent, 0, grid.empty() ? 4U : 24U}};
    return tensor_content(manifest, manifest.files[0], tensor);
  };
  const Borders grid = {0, 2, 4, 0, 3, 6};
  CHECK(content_of({3, 4}, {}, grid) == content_of({3, 4}, {}, grid));
  CHECK(content_of({3, 4}, {}, grid) != content_of({4, 3}, {}, grid));
  CHECK(content_of({2, 3}, {1, 1}, {}) != content_of({3, 2}, {1, 1}, {}));
}

// A change of a manifest with one tensor "u" of 24 bytes, which is extent 2.
std::function<void(Manifest&)> spoiled(const std::vector<TensorRun>& runs, const Strides& strides,
                                       const Shape& shape = {2, 3}, const Borders& grid = {}) {
  return [=](Manifest& m) {
    Tensor& tensor = m.files[0].tensors[0];
    tensor.extent = kNoExtent;
    tensor.runs = runs;
    tensor.strides = strides;
    tensor.shape = shape;
    tensor.grid = grid;
  };
}

TEST_CASE("tensors in boxes that break their promises are refused") {
  const std::vector<TensorRun> runs = {{0, 2, 8, 16}, {0, 2, 0, 8}};
  check_refused("expected runs that touch as one run",
                spoiled({{0, 2, 0, 8}, {0, 2, 8, 16}}, {}, {2, 3}, {0, 2, 0, 1, 3}));
  const auto spoil = [&](const Borders& grid) { return spoiled(runs, {}, {2, 3}, grid); };
  check_refused("expected runs of 32 bytes for the cells of its grid, got 24", spoil({0, 2, 0, 1, 4}));
  check_refused("expected runs of 32 bytes for the cells of its grid, got 24", spoil({0, 2, 0, 4}));
  check_refused("expected borders that end at 3, got 2", spoil({0, 2, 0, 1, 2}));
  check_refused("expected borders in 2 dimensions, got 1", spoil({0, 2}));
  check_refused("expected borders that ascend to 3, got 1 after 1", spoil({0, 2, 0, 1, 1, 3}));
  check_refused("in boxes", spoil({0, 2, 0, 1, UINT64_MAX}));
  check_refused("expected no grid", spoiled({{0, 2, 12, 12}, {0, 2, 0, 12}}, {}, {2, 3}, {0, 1, 2, 0, 3}));
  check_refused("expected strides or a grid, got both", spoiled({{0, 2, 0, 24}}, {1, 2}, {2, 3}, {0, 2, 0, 1, 3}));
  check_refused("expected a grid of runs only", spoiled({}, {}, {2, 3}, {0, 2, 0, 1, 3}));
  check_refused("expected runs within their extents",
                spoiled({{0, 2, 0, 8}, {0, 2, 9, 16}}, {}, {2, 3}, {0, 2, 0, 1, 3}));
  check_refused("cannot lie in boxes", spoiled(runs, {}, {2, 0}, {0, 2, 0, 1}));
  check_refused("cannot lie in boxes", [&](Manifest& m) {
    spoil({0, 2, 0, 1, 3})(m);
    m.files[0].tensors[0].dtype = DType::q8_0;
  });
}

TEST_CASE("scattered tensors that break their promises are refused") {
  const auto spoil = [](const std::vector<TensorRun>& runs, const Strides& strides, const Shape& shape = {2, 3}) {
    return spoiled(runs, strides, shape);
  };
  CHECK(encode_manifest(Manifest{{named("a", {"u"})}}).ok());
  check_refused("expected runs of extents, got extent 0 of file 2", spoil({{2, 0, 0, 24}}, {}));
  check_refused("expected runs of extents, got extent 9 of file 0", spoil({{0, 9, 0, 24}}, {}));
  check_refused("expected runs within their extents, got 24 bytes at 1 of one of 24", spoil({{0, 2, 1, 24}}, {}));
  check_refused("expected runs within their extents", spoil({{0, 2, UINT64_MAX, 24}}, {}));
  check_refused("expected runs within their extents", spoil({{0, 2, 0, 24}, {0, 2, 0, 0}}, {}));
  check_refused("expected runs of 24 bytes for shape [2, 3], got 20", spoil({{0, 2, 0, 20}}, {}));
  check_refused("expected extent 2, got a run that is all of it", spoil({{0, 2, 0, 24}}, {}));
  check_refused("expected no strides for C order", spoil({{0, 2, 0, 24}}, {3, 1}));
  check_refused("expected 2 strides, got 1", spoil({{0, 2, 0, 24}}, {1}));
  check_refused("expected runs of 28 bytes for shape [2, 3], got 24", spoil({{0, 2, 0, 24}}, {4, 1}));
  check_refused("expected runs that touch as one run", spoil({{0, 2, 0, 8}, {0, 2, 8, 16}}, {}));
  check_refused("expected runs that touch as one run", spoil({{0, 2, 0, 8}, {0, 2, 8, 16}}, {1, 2}));
  check_refused("expected runs of whole elements, got one of 22 bytes", spoil({{0, 2, 0, 22}, {0, 2, 0, 2}}, {1, 2}));
  check_refused("more than 2^63 bytes", spoil({{0, 2, 0, 24}}, {1ULL << 63U, 1}));
  check_refused("at most 4611686018427387904 bytes", spoil({{0, 2, 0, 4}}, {0, 0}, {1ULL << 60U, 2}));
  check_refused("expected runs of 0 bytes", spoil({{0, 2, 0, 20}}, {}, {0, 3}));
  check_refused("expected strides of runs only", spoil({}, {1, 2}));
  check_refused("expected runs or an extent, got both", [](Manifest& m) {
    m.files[0].tensors[0].runs = {{0, 2, 0, 24}};
  });
}

TEST_CASE("texts beyond their bounds are refused") {
  check_refused("format", [](Manifest& m) { m.files[0].format = std::string(33, 'f'); });
  check_refused("metadata key", [](Manifest& m) { m.files[0].metadata = {{std::string(65'537, 'k'), ""}}; });
  check_refused("metadata value", [](Manifest& m) { m.files[0].metadata = {{"", std::string(65'537, 'v')}}; });
  check_refused("1024 metadata entries", [](Manifest& m) { m.files[0].metadata.resize(1025); });
  check_refused("numpy description",
                [](Manifest& m) { m.files[0].tensors[0].descr = std::string((1U << 20U) + 1, ' '); });
}

TEST_CASE("a manifest that could be too large is refused before it is made") {
  std::size_t size = encoded(varied()).size();
  auto refused = encode_unchecked(varied(), size - 1);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::invalid);
  CHECK(encode_unchecked(varied(), 3 * size).ok());
}

TEST_CASE("the bound of a manifest's size holds where little is in each table") {
  Manifest manifest;
  for (char name = 'a'; name <= 'z'; ++name) {
    File& file = manifest.files.emplace_back();
    file = file_of({name}, {{"", DType::u8, {1}}, {"t", DType::u8, {1, 1, 1}}}, "f");
    file.metadata = {{"", "v"}, {"k", ""}};
  }
  CHECK_FALSE(encode_unchecked(manifest, encoded(manifest).size() - 1).ok());
}

}  // namespace
}  // namespace weft
