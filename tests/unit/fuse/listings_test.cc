#include "fuse/state/listings.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "fakes/memory_vfs.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::size_t kEntries = 25, kPerPage = 10;

struct Fixture {
  Fixture() {
    for (std::size_t i = 0; i < kEntries; ++i) add_version(i);
    vfs.make_lasting("models/a/0");
    vfs.entries_per_page = kPerPage;
    model = ino(ino(kRootIno, "models"), "a");
    version = ino(model, "0");
  }
  void add_version(std::size_t number) { vfs.add_file(fmt::format("models/a/{}/config.json", number), "{}"); }
  Ino ino(Ino dir, std::string_view name) {
    const auto found = vfs.lookup(dir, name);
    REQUIRE(found.ok());
    return found->ino;
  }
  Listings::Found find(Ino dir, ListPlace place) {
    auto found = listings->find(vfs, dir, place);
    REQUIRE(found.ok());
    return std::move(found).value();
  }
  // Returns the next entries, at most `count_max`, as the kernel requests them; none at the end.
  std::vector<DirEntry> next(Ino dir, ListPlace& place, std::size_t count_max) {
    const Listings::Found found = find(dir, place);
    const auto& entries = found.listing->page.entries;
    const std::size_t count = std::min(count_max, entries.size() - found.index);
    const auto begin = entries.begin() + static_cast<std::ptrdiff_t>(found.index);
    std::vector<DirEntry> out(begin, begin + static_cast<std::ptrdiff_t>(count));
    if (!out.empty()) place = out.back().place;
    return out;
  }
  std::map<std::string, int> rest_of(Ino dir, ListPlace place, std::size_t count_max) {
    std::map<std::string, int> seen;
    for (auto some = next(dir, place, count_max); !some.empty(); some = next(dir, place, count_max))
      for (const DirEntry& entry : some) ++seen[entry.name];
    return seen;
  }

  MemoryVfs vfs;
  std::unique_ptr<Listings> listings = std::make_unique<Listings>();
  Ino model = 0, version = 0;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a listing has each entry once, however little is asked for, and each page is made once") {
  for (const std::size_t count_max : {1U, 3U, 10U, 1000U}) {
    CAPTURE(count_max);
    vfs.commit();
    const std::uint64_t before = vfs.listed;
    const auto seen = rest_of(model, 0, count_max);
    CHECK(seen.size() == kEntries + 2);
    CHECK(seen.contains(".."));
    for (const auto& [name, times] : seen) CHECK(times == 1);
    CHECK(vfs.listed - before == 3);
    CHECK(rest_of(model, 0, count_max) == seen);
    CHECK(vfs.listed - before == 3);
  }
}

TEST_CASE_FIXTURE(Fixture, "a listing continues behind each place, also in a new server") {
  ListPlace place = 0;
  std::size_t left = kEntries + 2;
  for (auto one = next(model, place, 1); !one.empty(); one = next(model, place, 1)) {
    CHECK(place > 0);
    CHECK(place <= kLastPlace);
    --left;
    CHECK(rest_of(model, place, 7).size() == left);
    listings = std::make_unique<Listings>();
    CHECK(rest_of(model, place, 7).size() == left);
  }
  CHECK(left == 0);
}

TEST_CASE_FIXTURE(Fixture, "a beginning shows each commit") {
  CHECK(rest_of(model, 0, 100).size() == kEntries + 2);
  add_version(kEntries);
  CHECK(rest_of(model, 0, 100).size() == kEntries + 2);
  vfs.commit();
  CHECK(rest_of(model, 0, 100).size() == kEntries + 3);
}

TEST_CASE_FIXTURE(Fixture, "a continued listing is not older than its first part") {
  ListPlace older = 0, later = 0;
  REQUIRE(next(model, older, 100).size() == kPerPage + 2);
  REQUIRE(next(model, older, 3).size() == 3);
  add_version(kEntries);
  vfs.commit();
  REQUIRE(next(model, later, 100).size() == kPerPage + 2);
  const auto seen = rest_of(model, later, 3);
  CHECK(seen.size() == kEntries + 1 - kPerPage);
  CHECK(seen.contains(std::to_string(kEntries)));
  CHECK(rest_of(model, older, 100).size() >= kEntries - kPerPage - 3);
}

TEST_CASE_FIXTURE(Fixture, "attributes of a listing are current until the next commit") {
  CHECK(find(version, 0).current);
  ListPlace place = 0;
  REQUIRE(next(version, place, 1).size() == 1);
  CHECK(find(version, place).current);
  vfs.commit();
  CHECK_FALSE(find(version, place).current);
  CHECK(find(version, 0).current);
  CHECK(find(version, 0).listing->lasting);
  CHECK_FALSE(find(model, 0).listing->lasting);
}

TEST_CASE_FIXTURE(Fixture, "the listings of many small directories leave a large one where it was") {
  vfs.entries_per_page = 1000;
  ListPlace place = 0;
  REQUIRE(next(model, place, 1).size() == 1);
  const std::uint64_t before = vfs.listed;
  std::size_t others = 0;
  for (int turn = 0; turn < 2000; ++turn)
    for (std::size_t i = 0; i < kEntries; ++i, ++others) {
      vfs.commit();
      find(ino(model, std::to_string(i)), 0);
      if (i % 10 == 0) find(model, place);
    }
  CHECK(vfs.listed - before == others);
}
