#include "fetch/requests/version.h"

#include <doctest/doctest.h>

namespace weft::testing {
namespace {

// Each tensor has an extent of 10 bytes of its own.
File file_of(const std::vector<std::string>& names) {
  File file;
  for (const std::string& name : names) {
    const auto number = static_cast<std::uint32_t>(file.extents.size());
    file.extents.push_back({file.size, {10, {}}});
    file.tensors.push_back({name, DType::u8, {10}, number, ""});
    file.size += 10;
  }
  return file;
}

using Ranges = std::vector<Range>;

Ranges ranges_of(const File& file, const std::string& layers) {
  return wanted_ranges(Manifest{{file}}, layers).front();
}

}  // namespace

TEST_CASE("layers name tensors, and the layers above them") {
  const File file = file_of({"head.w", "model.layers.0.w", "model.layers.1.w", "model.layers.11.w"});
  CHECK(ranges_of(file, "") == Ranges{{0, 40}});
  CHECK(ranges_of(file, "head.w") == Ranges{{0, 10}});
  CHECK(ranges_of(file, "head") == Ranges{{0, 10}});
  CHECK(ranges_of(file, "model.layers.[0-1]") == Ranges{{10, 20}});
  CHECK(ranges_of(file, "*.w") == Ranges{{0, 40}});
  CHECK(ranges_of(file, "layers").empty());
}

TEST_CASE("a tensor of several runs is wanted in every file that it lies in") {
  File data = file_of({"a", "b"});
  File index;
  index.tensors.push_back({"index.x", DType::u8, {4}, kNoExtent, ""});
  index.tensors.back().runs = {{0, 1, 2, 4}};
  const Manifest manifest{{data, index}};
  CHECK(wanted_ranges(manifest, "index") == std::vector<Ranges>{{{10, 10}}, {}});
  CHECK(wanted_ranges(manifest, "a") == std::vector<Ranges>{{{0, 10}}, {}});
}

// A matcher that backtracks over every '*' would take for ever.
TEST_CASE("a pattern of many '*' is matched in bounded time") {
  const File file = file_of({std::string(4000, 'a')});
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*[a]";
  CHECK(ranges_of(file, pattern + "*") == Ranges{{0, 10}});
  CHECK(ranges_of(file, pattern + "b").empty());
}

}  // namespace weft::testing
