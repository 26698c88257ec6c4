#include "publish/shards.h"

#include <doctest/doctest.h>

#include "testing.h"

using weft::check_shards;
using weft::File;
using weft::Manifest;
using weft::testing::must;

namespace {

File shard(const std::string& path, const std::vector<std::string>& tensors) {
  File file;
  file.path = path;
  for (const std::string& name : tensors) file.tensors.push_back({name, weft::DType::u8, {}, weft::kNoExtent, ""});
  return file;
}

}  // namespace

TEST_CASE("an index is known by its name") {
  CHECK(weft::is_shard_index("model.safetensors.index.json"));
  CHECK(weft::is_shard_index("sub/model.safetensors.index.json"));
  CHECK(weft::is_shard_index("pytorch_model.bin.index.json"));
  CHECK_FALSE(weft::is_shard_index("config.json"));
  CHECK(weft::must_be_sound("model.safetensors.index.json"));
  CHECK_FALSE(weft::must_be_sound("pytorch_model.bin.index.json"));
}

TEST_CASE("each tensor of an index is in its shard, beside the index") {
  Manifest manifest;
  manifest.files = {shard("a/1.safetensors", {"x", "y"}), shard("a/2.safetensors", {"z"}),
                    shard("b.safetensors", {"x"})};
  CHECK(must(check_shards("i", "a/i.json", {{"x", "1.safetensors"}, {"z", "2.safetensors"}}, manifest)).empty());

  auto no_shard = check_shards("i", "a/i.json", {{"x", "b.safetensors"}}, manifest);
  REQUIRE_FALSE(no_shard.ok());
  CHECK(no_shard.error().code == weft::Errc::invalid);
  CHECK(no_shard.error().message == "i: expected the shard b.safetensors in its directory, got no such file");

  CHECK(must(check_shards("i", "a/i.json", {{"x", "2.safetensors"}}, manifest)) ==
        "expected tensor x in 2.safetensors, got none of that name");
  CHECK(must(check_shards("i", "a/i.json", {{"w", "2.safetensors"}, {"y", "2.safetensors"}}, manifest)) ==
        "expected tensor w in 2.safetensors, got none of that name; 2 tensors in all are not in their shard");
  CHECK(must(check_shards("i", "i.json", {{"x", "a/1.safetensors"}}, manifest)).empty());
}

TEST_CASE("a shard that is kept without its tensors may have those of the index") {
  Manifest manifest;
  manifest.files = {shard("1.safetensors", {}), shard("2.safetensors", {})};
  manifest.files[0].metadata = {{std::string(weft::kNoTensors), "a reason"}};
  CHECK(must(check_shards("i", "i.json", {{"x", "1.safetensors"}}, manifest)).empty());
  CHECK_FALSE(must(check_shards("i", "i.json", {{"x", "2.safetensors"}}, manifest)).empty());
}

TEST_CASE("the index of the root looks in the root") {
  Manifest manifest;
  manifest.files = {shard("1.safetensors", {"x"})};
  CHECK(must(check_shards("i", "i.json", {{"x", "1.safetensors"}}, manifest)).empty());
  CHECK_FALSE(check_shards("i", "i.json", {{"x", "../1.safetensors"}}, manifest).ok());
}
