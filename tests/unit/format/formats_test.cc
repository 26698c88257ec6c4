// Properties of every format.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <random>

#include "allocation.h"
#include "base/limits.h"
#include "builders.h"
#include "protobufs.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Sample {
  const char* name;
  std::string bytes;
};

// One small well-formed file of each format, none with padding at its end.
std::vector<Sample> samples() {
  std::string safetensors = safetensors_file(
      {{"a", "F32", {2, 3}, random_bytes(24, 1)}, {"b", "U8", {3}, random_bytes(3, 2)}}, R"({"format":"pt"})");
  GgufBuilder gguf;
  gguf.text("general.architecture", "llama")
      .alignment(64)
      .key("list", 9, le32(8) + le64(2) + gguf_text("x") + gguf_text("y"));
  gguf.tensor("a", {32, 2}, 2, 0).tensor("b", {3}, 0, 64);
  return {{"m.safetensors", safetensors},
          {"m.gguf", gguf.file(std::string(64 + 12, 'x'), 64)},
          {"m.npy", npy_raw(npy_dict("'<f4'", "(2, 3)"), std::string(24, 'x'))},
          {"s.npy", npy_raw(npy_dict("'<U3'", "(2,)"), std::string(24, 'x'))}};
}

// A source that fails, as a disk does, after `good_reads` reads.
class BrokenSource final : public ByteSource {
 public:
  BrokenSource(std::string_view bytes, unsigned good_reads) : whole_(bytes), good_reads_(good_reads) {}
  std::uint64_t size() const override { return whole_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) override {
    if (good_reads_ == 0) return Error{Errc::io, "/dir/file: Input/output error"};
    --good_reads_;
    return whole_.read(offset, out);
  }

 private:
  MemorySource whole_;
  unsigned good_reads_;
};

// A file of any size that is all zeros after its head.
class SparseSource final : public ByteSource {
 public:
  SparseSource(std::string head, std::uint64_t size) : head_(std::move(head)), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) override {
    for (std::byte& b : out) b = offset < head_.size() ? static_cast<std::byte>(head_[offset]) : std::byte{0}, ++offset;
    return {};
  }

 private:
  std::string head_;
  std::uint64_t size_;
};

}  // namespace

TEST_CASE("files of no format are opaque") {
  for (const char* name :
       {"config.json", "pytorch_model.bin", "safetensors", "model.safetensors.index.json", "x.npz"}) {
    CHECK(good(name, "{}").format.empty());
    CHECK(good(name, "").format.empty());
  }
}

TEST_CASE("names claim, first bytes suggest") {
  auto all = samples();
  CHECK(good("blob", all[1].bytes).format == "gguf");
  CHECK(good("array", all[2].bytes).format == "npy");
  CHECK(good("array", all[2].bytes).tensors[0].name == "array");
  for (const char* text : {"GGUF is a file format", "GGUF", "GGUF\n\n\n\n"}) {
    CHECK(good("README.md", text).format.empty());
    CHECK(good("README.md", text).metadata.empty());
  }
  CHECK(says(bad("x.safetensors", all[1].bytes), "expected a header"));
  CHECK(says(bad("x.gguf", all[2].bytes), "expected the magic \"GGUF\""));
  CHECK(says(bad("x.npy", all[1].bytes), "expected the magic"));
}

TEST_CASE("a file that claims a format by its first bytes and does not parse is kept with the reason") {
  const auto all = samples();
  for (const char* name : {"sha256-0123", "model.bin"}) {
    CAPTURE(name);
    CHECK(says(kept(name, all[1].bytes + std::string(64, 'x')), "trailing bytes"));
    CHECK(says(kept(name, all[1].bytes.substr(0, 40)), "expected"));
    CHECK(says(kept(name, std::string("GGUF\0\0\0\3", 8) + std::string(64, '\0')), "a big-endian one"));
    CHECK(says(kept(name, all[2].bytes + "x"), "bytes of data"));
    CHECK(says(kept(name, "\x93NUMPY"), "expected"));
  }
}

TEST_CASE("a Git LFS pointer is called one") {
  std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  for (const char* name : {"model.safetensors",
                           "model.gguf",
                           "x.npy",
                           "pytorch_model.bin",
                           "model.onnx",
                           "model.onnx_data",
                           "tf_model.h5",
                           "model.keras",
                           "consolidated.00.pth",
                           "last.ckpt",
                           "model.tflite",
                           "flax_model.msgpack",
                           "variables.data-00000-of-00001",
                           "variables.index",
                           "tokenizer.json",
                           "model.safetensors.index.json",
                           "m.pt",
                           "program.pt2",
                           "arrays.npz",
                           "arrays.pkl",
                           "weights.hdf5",
                           "model.weights.h5",
                           ".metadata",
                           "__0_0.distcp"}) {
    CAPTURE(name);
    Error error = bad(name, pointer);
    CHECK(error.code == Errc::invalid);
    CHECK(says(error, "got a Git LFS pointer to it: run git lfs pull"));
  }
  for (const char* name : {"README", "README.md", "pointers.txt"}) CHECK(good(name, pointer).format.empty());
  CHECK(good("notes.bin", pointer + std::string(1024, ' ')).format.empty());
}

TEST_CASE("a source that fails to read is no malformed file") {
  std::vector<Sample> all = samples();
  all.push_back({"blob", all[1].bytes});
  all.push_back({"m.npz", zip_file({{"a.npy", all[2].bytes}, {"b.npy", all[3].bytes}})});
  all.push_back({"m.onnx", onnx_with(onnx_raw("w", 1, {20'000}, std::string(80'000, 'x')) + pb_bytes(12, "text"))});
  for (const Sample& sample : all) {
    CAPTURE(sample.name);
    unsigned good_reads = 0;
    for (; good_reads < 100; ++good_reads) {
      BrokenSource source(sample.bytes, good_reads);
      auto layout = parse_file("/dir/file", sample.name, source);
      if (layout.ok()) break;
      CHECK(layout.error().code == Errc::io);
      CHECK(layout.error().message == "/dir/file: Input/output error");
    }
    CHECK(good_reads >= 2);
    CHECK(good_reads < 100);
  }
}

TEST_CASE("truncation at every byte is a clean error") {
  for (const Sample& sample : samples()) {
    CHECK(good(sample.name, sample.bytes).tensors.size() >= 1);
    for (std::size_t length = 0; length < sample.bytes.size(); ++length) {
      CAPTURE(length);
      CHECK(bad(sample.name, sample.bytes.substr(0, length)).code == Errc::invalid);
    }
  }
}

TEST_CASE("an appended byte is refused if the library of the format refuses it") {
  for (const Sample& sample : samples()) {
    const bool gguf = std::string_view(sample.name).ends_with(".gguf");
    const std::string longer = sample.bytes + std::string(gguf ? 65 : 1, '\0');
    if (std::string_view(sample.name).ends_with(".safetensors"))
      CHECK(bad(sample.name, longer).code == Errc::invalid);
    else
      CHECK(says(kept(sample.name, longer), gguf ? "got 65 trailing bytes" : "got 25"));
  }
}

TEST_CASE("mutated files parse into a sound layout or are refused") {
  std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const Sample& sample : samples()) {
    for (int round = 0; round < 3000; ++round) {
      std::string bytes = sample.bytes;
      for (std::uint64_t changes = random() % 4; changes-- > 0;)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      MemorySource source(bytes);
      auto layout = parse_file("x", sample.name, source);
      if (layout.ok()) check_layout(*layout, bytes.size());
    }
  }
}

TEST_CASE("a small file cannot make the reader allocate much") {
  const std::uint64_t huge = UINT64_MAX - 100;
  std::vector<Sample> hostile = {
      {"header.safetensors", le64(100'000'000) + "{"},
      {"huge.safetensors", le64(huge) + "{"},
      {"shape.safetensors",
       safetensors_raw(R"({"a":{"dtype":"F64","shape":[18446744073709551615],"data_offsets":[0,1]}})")},
      {"tensors.gguf", GgufBuilder().tensor_count(huge).file("")},
      {"keys.gguf", GgufBuilder().key_count(1ULL << 40U).file("")},
      {"text.gguf", GgufBuilder().key("k", 8, le64(huge)).file("")},
      {"short_text.gguf", GgufBuilder().key("k", 8, le64(60'000)).file("")},
      {"array.gguf", GgufBuilder().key("k", 9, le32(8) + le64(1ULL << 60U)).file("")},
      {"shape.gguf", GgufBuilder().tensor("t", {1ULL << 40U}, 0, 0).file("")},
      {"dims.gguf", GgufBuilder().tensor_count(1).file("").substr(0, 24) + le64(1) + "t" + le32(UINT32_MAX) + le64(0)},
      {"header.npy", "\x93NUMPY" + std::string("\2\0", 2) + le32(UINT32_MAX)},
      {"header1m.npy", "\x93NUMPY" + std::string("\2\0", 2) + le32(1U << 20U)},
      {"shape.npy", npy_raw(npy_dict("'<f8'", "(1152921504606846976,)"))},
      {"item.npy", npy_raw(npy_dict("'|S500000000'", "(1,)"))},
  };
  for (const Sample& sample : hostile) {
    CAPTURE(sample.name);
    MemorySource source(sample.bytes);
    reset_allocations();
    auto layout = parse_file(sample.name, sample.name, source);
    Allocations used = allocations();
    CHECK_FALSE(layout.ok());
    CHECK(used.largest <= 4096);
    CHECK(used.total <= 16'384);
  }
}

TEST_CASE("a huge file with a small header takes memory for the header only") {
  std::string head =
      safetensors_raw(R"({"a":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}})");
  SparseSource safetensors(head, head.size() + (1ULL << 40U));
  std::string dict = npy_dict("'|u1'", "(1099511627776,)");
  SparseSource npy(npy_raw(dict), npy_raw(dict).size() + (1ULL << 40U));
  std::string info = GgufBuilder().tensor("a", {1ULL << 40U}, 24, 0).file("");
  SparseSource gguf(info, info.size() + (1ULL << 40U));
  const std::vector<std::pair<const char*, ByteSource*>> files = {
      {"m.safetensors", &safetensors}, {"m.npy", &npy}, {"m.gguf", &gguf}};
  for (const auto& file : files) {
    CAPTURE(file.first);
    reset_allocations();
    auto layout = parse_file("m", file.first, *file.second);
    Allocations used = allocations();
    REQUIRE(layout.ok());
    CHECK(range_of(layout->tensors[0]).length == 1ULL << 40U);
    CHECK(used.largest <= 64U << 10U);
    CHECK(used.total <= 128U << 10U);
  }
}

TEST_CASE("a gguf header is read only as far as its bound") {
  std::string head = GgufBuilder().key("k", 8, le64(limits::kGgufHeaderMax)).header();
  SparseSource source(head, 1ULL << 40U);
  auto layout = parse_file("m", "m.gguf", source);
  REQUIRE(layout.ok());
  CHECK(layout->tensors.empty());
  REQUIRE(layout->metadata.size() == 1);
  CHECK(layout->metadata[0].first == kNoTensors);
  CHECK(layout->metadata[0].second.find("before the end of the largest header") != std::string::npos);
}
