#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>

#include "builders.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Shard {
  std::string name;
  std::string shape;
  std::string offsets;  // saved_offsets; "": none
  std::string data;
};

// A file of one process. Its tensors are bytes.
std::string file_of(const std::vector<Shard>& shards) {
  std::string info, header, data;
  for (const Shard& shard : shards) {
    const std::size_t begin = data.size();
    data += shard.data;
    header +=
        fmt::format(",\"{}\":{}", shard.name, entry("U8", shard.shape, fmt::format("[{},{}]", begin, data.size())));
    if (shard.offsets.empty()) continue;
    info +=
        fmt::format("{}\\\"{}\\\":{{\\\"saved_offsets\\\":{}}}", info.empty() ? "" : ",", shard.name, shard.offsets);
  }
  return safetensors_raw(
      fmt::format("{{\"__metadata__\":{{\"DCP_SHARDING_INFO\":\"{{{}}}\",\"format\":\"pt\"}}{}}}", info, header), data);
}

// The layouts of files of one directory, after join_shards().
std::vector<Layout> joined(const std::vector<std::string>& files) {
  std::vector<Layout> layouts;
  for (const std::string& file : files) layouts.push_back(good("a.safetensors", file));
  std::vector<ShardedFile> sharded;
  for (std::size_t i = 0; i < files.size(); ++i) {
    CHECK(layouts[i].sharded);
    sharded.push_back({std::to_string(i), &layouts[i]});
  }
  must(join_shards(sharded));
  return layouts;
}

std::string bytes_of(const std::vector<std::string>& files, const FoundTensor& tensor) {
  std::string out;
  for (const TensorPart& part : tensor.parts) out += files[part.file].substr(part.offset, part.length);
  return out;
}

std::string why_hidden(const Shard& one, const Shard& other) {
  const auto layouts = joined({file_of({one}), file_of({other})});
  CHECK(layouts[0].tensors.empty());
  CHECK(layouts[1].tensors.empty());
  REQUIRE(layouts[0].hidden.size() == 1);
  CHECK(layouts[0].hidden[0].name == "w");
  CHECK(layouts[0].hidden[0].bytes == one.data.size() + other.data.size());
  return layouts[0].hidden[0].why;
}

}  // namespace

TEST_CASE("sharded safetensors: shards of rows and of columns are tensors of the first file") {
  const std::vector<std::string> files = {
      file_of({{"columns", "[2,1]", "[0,0]", "ad"}, {"rows", "[1,2]", "[0,0]", "12"}, {"own", "[2]", "[0]", "xy"}}),
      file_of({{"columns", "[2,2]", "[0,1]", "bcef"}, {"rows", "[2,2]", "[1,0]", "3456"}}),
      file_of({{"whole", "[3]", "[0]", "uvw"}, {"none", "[0,2]", "[0,0]", ""}})};
  const auto layouts = joined(files);
  CHECK(layouts[0].others == std::vector<std::string>{"1", "2"});
  REQUIRE(layouts[0].tensors.size() == 3);
  CHECK(layouts[0].hidden.empty());
  for (const FoundTensor& tensor : layouts[0].tensors) {
    if (tensor.name == "columns") {
      CHECK(tensor.shape == Shape{2, 3});
      CHECK(tensor.grid == Borders{0, 2, 0, 1, 3});
      CHECK(bytes_of(files, tensor) == "adbcef");
    } else if (tensor.name == "rows") {
      CHECK(tensor.shape == Shape{3, 2});
      CHECK(tensor.grid.empty());
      CHECK(bytes_of(files, tensor) == "123456");
    } else {
      CHECK(tensor.name == "own");
      CHECK(bytes_of(files, tensor) == "xy");
    }
  }
  CHECK(layouts[1].tensors.empty());
  REQUIRE(layouts[2].tensors.size() == 2);
  CHECK(layouts[2].others.empty());
}

TEST_CASE("sharded safetensors: shards that do not fit together are hidden") {
  const Shard first{"w", "[2,1]", "[0,0]", "ad"};
  CHECK(why_hidden(first, {"w", "[2,1]", "[0,0]", "be"}).find("overlap") != std::string::npos);
  CHECK(why_hidden(first, {"w", "[2,1]", "[0,2]", "be"}).find("no grid") != std::string::npos);
  CHECK(why_hidden(first, {"w", "[1,1]", "[1,1]", "b"}).find("missing") != std::string::npos);
  CHECK(why_hidden(first, {"w", "[2]", "[2]", "be"}).find("dimensions") != std::string::npos);
  CHECK(why_hidden(first, {"w", "[2,1]", "[0,18446744073709551615]", "be"}) == "a shard beyond 2^64 elements");
  CHECK(why_hidden(first, {"w", "[2,1]", "[9223372036854775807,4]", "be"}).find("no grid") != std::string::npos);
}

TEST_CASE("sharded safetensors: a tensor that lacks its first shards is hidden, also in a single file") {
  const Shard last{"w", "[2,1]", "[0,1]", "be"};
  CHECK(why_hidden(last, {"w", "[2,1]", "[0,2]", "cf"}) == "its first shards are missing: it begins at [0, 1]");
  const std::vector<std::string> files = {file_of({{"w", "[1,2]", "[3,0]", "gh"}, {"own", "[2]", "[0]", "xy"}})};
  const auto layouts = joined(files);
  REQUIRE(layouts[0].tensors.size() == 1);
  CHECK(layouts[0].tensors[0].name == "own");
  REQUIRE(layouts[0].hidden.size() == 1);
  CHECK(layouts[0].hidden[0].why == "its first shards are missing: it begins at [3, 0]");
  CHECK(layouts[0].others.empty());
}

TEST_CASE("sharded safetensors: no file has the whole shape, so a tensor without its last shards ends earlier") {
  const std::vector<std::string> files = {file_of({{"w", "[1,2]", "[0,0]", "ab"}}),
                                          file_of({{"w", "[1,2]", "[1,0]", "cd"}})};
  CHECK(joined(files)[0].tensors[0].shape == Shape{2, 2});
  CHECK(joined({files[0]})[0].tensors[0].shape == Shape{1, 2});
}

TEST_CASE("sharded safetensors: a tensor without its offsets makes a file without shards") {
  CHECK_FALSE(good("a.safetensors", file_of({{"w", "[2]", "[0]", "ab"}, {"v", "[2]", "", "cd"}})).sharded);
  CHECK_FALSE(good("a.safetensors", file_of({{"w", "[2]", "[0,0]", "ab"}})).sharded);
  CHECK_FALSE(good("a.safetensors", file_of({{"w", "[2]", "[-1]", "ab"}})).sharded);
  CHECK_FALSE(good("a.safetensors", file_of({{"w", "[2]", "7", "ab"}})).sharded);
  CHECK_FALSE(good("a.safetensors", file_of({{"w", "[2]", "[[[[[0]]]]]", "ab"}})).sharded);
  const Layout plain = good("a.safetensors", safetensors_raw("{\"w\":" + entry("U8", "[2]", "[0,2]") + "}", "ab"));
  CHECK_FALSE(plain.sharded);
  CHECK(plain.tensors[0].begin.empty());
}
