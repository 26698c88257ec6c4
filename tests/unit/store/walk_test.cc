// Walks of a store that has more rows than one state may read.
#include "weft/store/walk.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include <fmt/core.h>

#include "index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::size_t kRows = limits::kRowsPerSnapshot;
constexpr std::size_t kMany = 2 * kRows + 10;

std::string key_at(std::size_t i) {
  return fmt::format("k{:06}", i);
}

}  // namespace

TEST_CASE("a visitor of listed rows runs without a snapshot") {
  TestStore test;
  OpenOptions options = write_options();
  options.reader_wait_ms = 0;
  auto store = open_store(test.path, options);
  PublishArgs args;
  for (std::size_t i = 0; i < kMany; ++i) args.tags.push_back(key_at(i));
  const VersionRow version = must_publish(*store, "m", {{1}}, args).version;
  std::size_t count = 0;
  must(each_row(*store, list_tags(version.model), [&](const TagRow& tag) -> Status {
    CHECK(tag.name == key_at(count));
    if (count++ % kRows == 0)
      for (const char* name : {"x", "y", "z"}) WEFT_CHECK(store->set_tag("m", fmt::format("a{}{}", name, count), 1));
    return {};
  }));
  CHECK(count == kMany);

  Renewed renewed(*store);
  const IndexState first = must(renewed.get(kRows))->state();
  must(store->set_tag("m", "t", 1));
  CHECK_FALSE(must(renewed.get())->state() == first);
  renewed.end();
  for (const char* name : {"u", "v", "w"}) must(store->set_tag("m", name, 1));
}
