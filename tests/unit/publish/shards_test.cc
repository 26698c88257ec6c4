#include "publish/shards.h"

#include <doctest/doctest.h>

using weft::check_shards;
using weft::File;
using weft::Manifest;

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
  CHECK_FALSE(weft::is_shard_index("config.json"));
}

TEST_CASE("each tensor of an index is in its shard, beside the index") {
  Manifest manifest;
  manifest.files = {shard("a/1.safetensors", {"x", "y"}), shard("a/2.safetensors", {"z"}),
                    shard("b.safetensors", {"x"})};
  CHECK(check_shards("i", "a/i.json", {{"x", "1.safetensors"}, {"z", "2.safetensors"}}, manifest).ok());

  auto no_shard = check_shards("i", "a/i.json", {{"x", "b.safetensors"}}, manifest);
  REQUIRE_FALSE(no_shard.ok());
  CHECK(no_shard.error().code == weft::Errc::invalid);
  CHECK(no_shard.error().message == "i: expected the shard b.safetensors beside it, got no such file");

  auto no_tensor = check_shards("i", "a/i.json", {{"x", "2.safetensors"}}, manifest);
  REQUIRE_FALSE(no_tensor.ok());
  CHECK(no_tensor.error().message == "i: expected tensor x in 2.safetensors, got none of that name");
}

TEST_CASE("a shard that is kept without its tensors may have those of the index") {
  Manifest manifest;
  manifest.files = {shard("1.safetensors", {}), shard("2.safetensors", {})};
  manifest.files[0].metadata = {{std::string(weft::kNoTensors), "a reason"}};
  CHECK(check_shards("i", "i.json", {{"x", "1.safetensors"}}, manifest).ok());
  CHECK_FALSE(check_shards("i", "i.json", {{"x", "2.safetensors"}}, manifest).ok());
}

TEST_CASE("the index of the root looks in the root") {
  Manifest manifest;
  manifest.files = {shard("1.safetensors", {"x"})};
  CHECK(check_shards("i", "i.json", {{"x", "1.safetensors"}}, manifest).ok());
  CHECK_FALSE(check_shards("i", "i.json", {{"x", "../1.safetensors"}}, manifest).ok());
}
