#include "model/inherit.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/safetensors_file.h"
#include "unit/model/models.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

using testing::content;
using testing::file_of;
using testing::opaque;

// A file in the layout of the reference implementation. A number determines the content of each tensor.
File laid_out(const std::string& path, const std::vector<std::pair<testing::Spec, std::uint64_t>>& tensors) {
  std::vector<PlacedTensor> placed;
  for (const auto& [spec, seed] : tensors)
    placed.push_back({{spec.name, spec.dtype, spec.shape, kNoExtent, ""},
                      {0, content(tensor_bytes(spec.dtype, spec.shape).value(), seed)}});
  return lay_out_safetensors(path, placed, {{"format", "pt"}}).file;
}

struct Case {
  Manifest base{
      {opaque("config.json"), laid_out("model.safetensors", {{{"a"}, 1}, {{"b"}, 2}, {{"c", DType::i64, {4}}, 3}})}};
  Manifest given;
  bool add = false;

  Result<Inherited> run() const {
    std::vector<std::string> places;
    for (const File& file : given.files) places.push_back("/in/" + file.path);
    return inherit_manifest({"m@1", base, given, places, add});
  }
  Inherited made() const {
    auto out = run();
    if (!out.ok()) FAIL(out.error().message);
    return *out;
  }
  void refused(const std::string& message) const {
    auto out = run();
    REQUIRE_FALSE(out.ok());
    CHECK(out.error().code == Errc::invalid);
    CHECK(out.error().message == message);
  }
};

}  // namespace

TEST_CASE("empty directories are inherited, and stay until something comes into them") {
  using Paths = std::vector<std::string>;
  Case c;
  c.base.directories = {"1", "logs", "runs/a"};
  c.given = {{laid_out("part.safetensors", {{{"b"}, 9}})}};
  CHECK(c.made().manifest.directories == Paths{"1", "logs", "runs/a"});
  c.given.directories = {"logs", "new", "runs"};
  CHECK(c.run().error().message == "new/: expected a directory of m@1, which has none of that name (--add adds it)");
  c.add = true;
  c.given.files.push_back(opaque("logs/x"));
  c.given.directories = {"1/2", "new"};
  CHECK(c.made().manifest.directories == Paths{"1/2", "new", "runs/a"});
}

TEST_CASE("changed tensors take the place of those of their name, and the header stays") {
  Case c;
  c.given = {{laid_out("part.safetensors", {{{"b"}, 9}})}};
  Inherited made = c.made();
  CHECK(made.headers.empty());
  Manifest whole = c.base;
  whole.files[1] = laid_out("model.safetensors", {{{"a"}, 1}, {{"b"}, 9}, {{"c", DType::i64, {4}}, 3}});
  CHECK(made.manifest == whole);
}

TEST_CASE("a safetensors file whose tensors are not read replaces no file of the base") {
  Case c;
  c.given = {{opaque("model.safetensors")}};
  c.given.files[0].metadata = {{std::string(kNoTensors), "expected at most 32 dimensions, got more"}};
  c.refused(
      "/in/model.safetensors: expected a safetensors file that weft can read: expected at most 32 dimensions, got "
      "more");
}

TEST_CASE("a tensor that the base lacks is refused, with the expected and the given tensor") {
  Case c;
  SUBCASE("name") {
    c.given = {{laid_out("part.safetensors", {{{"z"}, 9}})}};
    c.refused(
        "/in/part.safetensors: tensor \"z\": expected a name of m@1, which has none of that name (--add adds it)");
  }
  SUBCASE("shape") {
    c.given = {{laid_out("part.safetensors", {{{"b", DType::f32, {3, 2}}, 9}})}};
    c.refused(
        "/in/part.safetensors: tensor \"b\": expected F32 [2, 3] as in model.safetensors of m@1, got F32 [3, 2] (--add "
        "takes it)");
  }
  SUBCASE("type") {
    c.given = {{laid_out("part.safetensors", {{{"b", DType::bf16}, 9}})}};
    c.refused(
        "/in/part.safetensors: tensor \"b\": expected F32 [2, 3] as in model.safetensors of m@1, got BF16 [2, 3] "
        "(--add "
        "takes it)");
  }
  SUBCASE("file") {
    c.given = {{opaque("notes.txt")}};
    c.refused(
        "/in/notes.txt: expected a safetensors file, or a file that m@1 has; it has no notes.txt (--add adds it)");
  }
  SUBCASE("twice") {
    c.given = {{laid_out("p.safetensors", {{{"b"}, 8}}), laid_out("q.safetensors", {{{"b"}, 9}})}};
    c.refused("/in/q.safetensors: tensor \"b\": expected it in one of the files, got it twice");
  }
  SUBCASE("in two files") {
    c.base.files.push_back(laid_out("other.safetensors", {{{"b"}, 2}}));
    c.given = {{laid_out("p.safetensors", {{{"b"}, 8}})}};
    c.refused(
        "/in/p.safetensors: tensor \"b\": expected it in one file of m@1, got it in model.safetensors and "
        "other.safetensors");
  }
  SUBCASE("a format with sums of the bytes") {
    c.base.files[1] = file_of("model.npz", {{"b"}}, "npz");
    c.given = {{laid_out("p.safetensors", {{{"b"}, 8}})}};
    c.refused(
        "/in/p.safetensors: tensor \"b\": expected it in a file of safetensors, GGUF or npy, got model.npz of m@1 "
        "(npz); publish the whole file");
  }
  SUBCASE("another format cannot change shape") {
    c.base.files[1] = file_of("model.gguf", {{"b"}}, "gguf");
    c.add = true;
    c.given = {{laid_out("p.safetensors", {{{"b", DType::bf16}, 8}})}};
    c.refused(
        "/in/p.safetensors: tensor \"b\": expected F32 [2, 3] as in model.gguf of m@1, got BF16 [2, 3] (only a "
        "safetensors file can take another)");
  }
}

TEST_CASE("with `add` the header is laid out as for a new file") {
  Case c;
  c.add = true;
  c.given = {{opaque("notes.txt"), laid_out("p.safetensors", {{{"b", DType::bf16}, 8}, {{"new", DType::u8, {5}}, 9}})}};
  Inherited made = c.made();
  Manifest whole{
      {c.base.files[0],
       laid_out("model.safetensors",
                {{{"a"}, 1}, {{"b", DType::bf16}, 8}, {{"c", DType::i64, {4}}, 3}, {{"new", DType::u8, {5}}, 9}}),
       opaque("notes.txt")}};
  CHECK(made.manifest == whole);
  REQUIRE(made.headers.size() == 1);
  CHECK(made.headers[0].first == "model.safetensors");
  CHECK(made.headers[0].second.size() == made.manifest.files[1].extents[0].id.length);
  CHECK(made.headers[0].second.find("{\"__metadata__\":{\"format\":\"pt\"},\"c\":{\"dtype\":\"I64\"") == 8);
}

TEST_CASE("shards keep their places; what is added needs a shard's name and an index") {
  Case c;
  c.base = {{laid_out("m-1.safetensors", {{{"a"}, 1}}), laid_out("m-2.safetensors", {{{"b"}, 2}}),
             opaque("m.safetensors.index.json")}};
  c.given = {{laid_out("p.safetensors", {{{"b"}, 9}})}};
  Manifest whole = c.base;
  whole.files[1] = laid_out("m-2.safetensors", {{{"b"}, 9}});
  CHECK(c.made().manifest == whole);
  c.add = true;
  c.given = {{laid_out("p.safetensors", {{{"z"}, 9}})}};
  c.refused(
      "/in/p.safetensors: tensor \"z\": expected a file called as that of m@1 which is to have it, got 2 safetensors "
      "files "
      "to choose from");
  c.given = {{laid_out("m-2.safetensors", {{{"z"}, 9}})}};
  c.refused("m@1: m.safetensors.index.json lists its tensors: expected a new one with those that are added");
  c.given.files.push_back(opaque("m.safetensors.index.json", 12));
  whole.files[1] = laid_out("m-2.safetensors", {{{"b"}, 2}, {{"z"}, 9}});
  whole.files[2] = opaque("m.safetensors.index.json", 12);
  CHECK(c.made().manifest == whole);
}

TEST_CASE("a header with unknown metadata is not laid out again") {
  Case c;
  c.base.files[1].extents[0].id.length += 70'000;
  c.add = true;
  c.given = {{laid_out("p.safetensors", {{{"z"}, 9}})}};
  auto out = c.run();
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().code == Errc::unsupported);
}

}  // namespace weft
