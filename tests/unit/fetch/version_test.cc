#include "fetch/version.h"

#include <doctest/doctest.h>

namespace weft::testing {
namespace {

// Each tensor lies in an extent of 10 bytes of its own.
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

}  // namespace

TEST_CASE("layers name tensors, and the layers above them") {
  const File file = file_of({"head.w", "model.layers.0.w", "model.layers.1.w", "model.layers.11.w"});
  CHECK(wanted_ranges(file, "") == Ranges{{0, 40}});
  CHECK(wanted_ranges(file, "head.w") == Ranges{{0, 10}});
  CHECK(wanted_ranges(file, "head") == Ranges{{0, 10}});
  CHECK(wanted_ranges(file, "model.layers.[0-1]") == Ranges{{10, 20}});
  CHECK(wanted_ranges(file, "*.w") == Ranges{{0, 40}});
  CHECK(wanted_ranges(file, "layers").empty());
}

// A matcher that tries every place for every '*' would not return.
TEST_CASE("a pattern of many '*' is matched in bounded time") {
  const File file = file_of({std::string(4000, 'a')});
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*[a]";
  CHECK(wanted_ranges(file, pattern + "*") == Ranges{{0, 10}});
  CHECK(wanted_ranges(file, pattern + "b").empty());
}

}  // namespace weft::testing
