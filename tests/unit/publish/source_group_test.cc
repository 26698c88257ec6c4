// The files beside a main file, for formats that open many of them.
#include "publish/source_group.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "publish/gather.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::size_t open_files() {
  return static_cast<std::size_t>(std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd")));
}

std::string name_of(std::size_t number) {
  return fmt::format("f{:03}", number);
}

}  // namespace

TEST_CASE("files beside a main file stay open in bounded number, and are read again as they were") {
  constexpr std::size_t kFiles = 3 * SourceGroup::kBesideOpenMax;
  const TempDir dir;
  std::vector<Draft> drafts(kFiles);
  for (std::size_t i = 0; i < kFiles; ++i) {
    write_file(dir / name_of(i), name_of(i));
    drafts[i].source.path = name_of(i);
    drafts[i].source.where = dir / name_of(i);
  }
  MemorySource main("main");
  SourceGroup group(drafts, 0, main);
  const std::size_t before = open_files();
  std::vector<ByteSource*> files;
  for (std::size_t i = 0; i < kFiles; ++i) files.push_back(must(group.beside(name_of(i))));
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < kFiles; ++i) {
      std::string text(4, '\0');
      REQUIRE(files[i]->read(0, std::as_writable_bytes(std::span(text))).ok());
      CHECK(text == name_of(i));
      CHECK(must(group.beside(name_of(i))) == files[i]);
    }
  CHECK(open_files() <= before + SourceGroup::kBesideOpenMax);
  CHECK(group.opened().size() == kFiles);

  std::filesystem::remove(dir / name_of(1));
  write_file(dir / name_of(1), "new!");
  std::string text(4, '\0');
  const Status changed = files[1]->read(0, std::as_writable_bytes(std::span(text)));
  REQUIRE_FALSE(changed.ok());
  CHECK(changed.error().code == Errc::changed);
}
