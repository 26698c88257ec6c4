#include "node/assembled_dir.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "base/sys.h"
#include "node/fill.h"
#include "testing.h"

namespace weft::testing {
namespace {

Digest key_of(unsigned char number) {
  Digest key;
  key.bytes.fill(number);
  return key;
}

struct Directory {
  TempDir top;
  Directory() { REQUIRE(make_directory(top / "cache").ok()); }
  AssembledDir open(std::optional<std::uint64_t> bytes_max) const {
    auto dir = AssembledDir::open(top.path(), bytes_max);
    REQUIRE(dir.ok());
    return std::move(dir).value();
  }
  std::set<std::string> names() const {
    const auto listed = list_directory(top / "cache/assembled");
    REQUIRE(listed.ok());
    return {listed->begin(), listed->end()};
  }
};

void make(const AssembledDir& dir, unsigned char number, std::uint64_t size) {
  auto part = dir.begin(key_of(number), size, 0);
  if (!part.ok()) FAIL(part.error().message);
  REQUIRE(dir.finish(std::move(part).value()).ok());
}

// When a file was last used, in seconds.
void use_at(const AssembledDir& dir, unsigned char number, time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(::utimensat(AT_FDCWD, (dir.path() + "/" + to_hex(key_of(number))).c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("an assembled file is found by key and size once it is finished") {
  Directory directory;
  const AssembledDir dir = directory.open(100);
  {
    auto part = dir.begin(key_of(1), 40, 0);
    REQUIRE(part.ok());
    CHECK_FALSE(dir.has(key_of(1)));
    CHECK(dir.begin(key_of(1), 40, 0).error().code == Errc::busy);
    CHECK(dir.usage().parts == 1);
    REQUIRE(dir.finish(std::move(part).value()).ok());
  }
  CHECK(dir.find(key_of(1), 40).ok());
  CHECK(dir.find(key_of(1), 41).error().code == Errc::not_found);
  CHECK(dir.find(key_of(2), 40).error().code == Errc::not_found);
  CHECK(dir.begin(key_of(1), 40, 0).error().code == Errc::exists);
  CHECK(dir.usage().files == 1);
  CHECK(dir.usage().bytes == 40);
}

TEST_CASE("a part that is not finished goes") {
  Directory directory;
  const AssembledDir dir = directory.open(100);
  CHECK(dir.begin(key_of(1), 40, 0).ok());
  CHECK(directory.names() == std::set<std::string>{"lock"});
}

TEST_CASE("what was used longest ago makes room, but not what is open or pinned") {
  Directory directory;
  const AssembledDir dir = directory.open(100);
  for (unsigned char i = 1; i <= 4; ++i) make(dir, i, 25);
  for (unsigned char i = 1; i <= 4; ++i) use_at(dir, i, i);
  {
    const auto open = dir.find(key_of(1), 25);  // the latest now, and in use
    REQUIRE(open.ok());
    use_at(dir, 1, 1);
    REQUIRE(dir.pin(key_of(2), 7).value());
    make(dir, 5, 25);
    CHECK(dir.has(key_of(1)));
    CHECK(dir.has(key_of(2)));
    CHECK_FALSE(dir.has(key_of(3)));
    CHECK(dir.has(key_of(4)));
    // Two cannot go: nothing goes for what would not fit without them.
    CHECK(dir.begin(key_of(6), 80, 0).error().code == Errc::no_space);
    CHECK(dir.usage().files == 4);
  }
  REQUIRE(dir.unpin(key_of(2), 7).ok());
  make(dir, 6, 75);
  CHECK(dir.usage().bytes == 100);
  CHECK(dir.has(key_of(6)));
  CHECK(dir.evicted() == 4);
  CHECK(dir.begin(key_of(7), 101, 0).error().code == Errc::no_space);
  CHECK(dir.has(key_of(6)));
}

TEST_CASE("a part counts with its full size from the start, for all who share the directory") {
  Directory directory;
  const AssembledDir one = directory.open(100);
  const AssembledDir other = directory.open(100);
  const auto part = one.begin(key_of(1), 60, 0);
  REQUIRE(part.ok());
  CHECK(other.begin(key_of(2), 60, 0).error().code == Errc::no_space);
  CHECK(other.begin(key_of(3), 40, 0).ok());
}

TEST_CASE("who adds a file goes by a bound of its own") {
  Directory directory;
  const AssembledDir wide = directory.open(100);
  const AssembledDir narrow = directory.open(50);
  make(wide, 1, 40);
  make(wide, 2, 40);
  CHECK(narrow.usage().bytes == 80);  // nothing goes before it adds one
  CHECK(narrow.begin(key_of(3), 60, 0).error().code == Errc::no_space);
  CHECK(wide.usage().bytes == 80);
  make(narrow, 4, 50);
  CHECK(wide.usage().bytes == 50);
  make(wide, 5, 50);
  CHECK(narrow.usage().bytes == 100);
}

TEST_CASE("the disk is not filled") {
  Directory directory;
  const AssembledDir dir = directory.open(UINT64_MAX);
  CHECK(dir.begin(key_of(1), 4096, UINT64_MAX / 2).error().code == Errc::no_space);
}

TEST_CASE("the bound of the store holds for those who name none") {
  Directory directory;
  const AssembledDir dir = directory.open({});
  CHECK(dir.bytes_max() > 0);
  make(dir, 1, 40);
  make(dir, 2, 40);
  REQUIRE(dir.set_bytes_max(50).ok());
  CHECK(dir.usage().bytes == 40);
  CHECK(directory.open({}).bytes_max() == 50);
  CHECK(directory.open(70).bytes_max() == 70);
  write_file(directory.top / "cache/assembled/bytes_max", "lots");
  CHECK(directory.open({}).bytes_max() > 50);
}

TEST_CASE("parts of makers that died go when the next one needs room") {
  Directory directory;
  const AssembledDir dir = directory.open(100);
  const pid_t maker = ::fork();
  if (maker == 0) {
    auto part = dir.begin(key_of(1), 90, 0);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(maker, nullptr, 0);
  CHECK(dir.usage().parts == 1);
  SUBCASE("of another file") {
    make(dir, 2, 90);
  }
  SUBCASE("of the same file") {
    make(dir, 1, 90);
    CHECK(dir.has(key_of(1)));
  }
  SUBCASE("swept") {
    CHECK(dir.sweep(nullptr, false)->parts == 1);
  }
  CHECK(dir.usage().parts == 0);
}

TEST_CASE("a file is pinned until the last version that pinned it lets go") {
  Directory directory;
  const AssembledDir dir = directory.open(100);
  make(dir, 1, 60);
  CHECK(dir.pin(key_of(1), 7).value());
  CHECK_FALSE(dir.pin(key_of(1), 7).value());
  CHECK(dir.pin(key_of(1), 8).value());
  REQUIRE(dir.unpin(key_of(1), 7).ok());
  CHECK(directory.names() == std::set<std::string>{"lock", to_hex(key_of(1)), to_hex(key_of(1)) + ".8.pin"});
  CHECK(dir.usage().pinned_files == 1);
  CHECK(dir.begin(key_of(2), 60, 0).error().code == Errc::no_space);
  REQUIRE(dir.unpin(key_of(1), 8).ok());
  CHECK(dir.usage().pinned_files == 0);
  make(dir, 2, 60);
}

TEST_CASE("what shares its blocks is not evicted for room on the disk") {
  Directory directory;
  const AssembledDir dir = directory.open(UINT64_MAX);
  make(dir, 1, 4096);
  CHECK(dir.begin(key_of(2), UINT64_MAX / 2, UINT64_MAX / 4).error().code == Errc::no_space);
  CHECK(dir.has(key_of(1)));
  CHECK(dir.evicted() == 0);
}

TEST_CASE("a sweep removes what nobody needs, with its pin") {
  Directory directory;
  const AssembledDir dir = directory.open(100);
  for (unsigned char i = 1; i <= 3; ++i) make(dir, i, 10);
  REQUIRE(dir.pin(key_of(2), 7).ok());
  REQUIRE(dir.pin(key_of(3), 7).ok());
  REQUIRE(dir.pin(key_of(3), 8).ok());
  write_file(directory.top / "cache/assembled/notes.txt", "not ours");
  const AssembledDir::Needed needed{{key_of(3), {8, 9}}};
  CHECK(dir.sweep(&needed, true)->files == 2);
  CHECK(dir.usage().files == 3);
  const auto swept = dir.sweep(&needed, false);
  REQUIRE(swept.ok());
  CHECK(swept->files == 2);
  CHECK(swept->bytes == 20);
  CHECK(directory.names() ==
        std::set<std::string>{"lock", "notes.txt", to_hex(key_of(3)), to_hex(key_of(3)) + ".8.pin"});
}

TEST_CASE("a link in the place of a file is not followed") {
  Directory directory;
  const AssembledDir dir = directory.open(100);
  write_file(directory.top / "elsewhere", "secret");
  std::filesystem::create_symlink(directory.top / "elsewhere", dir.path() + "/" + to_hex(key_of(1)));
  CHECK_FALSE(dir.find(key_of(1), 6).ok());
}

TEST_CASE("a file is planned as whole blocks to share and ends to copy") {
  const std::vector<FillRun> runs{{0, 100, {nullptr, 8192}},         // less than a block
                                  {100, 10000, {nullptr, 100}},      // alike: 100..4096, 4096..8192, 8192..10100
                                  {10100, 9000, {nullptr, 40000}}};  // not alike
  const FillPlan plan = plan_fill(runs, 4096);
  REQUIRE(plan.clones.size() == 1);
  CHECK(plan.clones[0].offset == 4096);
  CHECK(plan.clones[0].length == 4096);
  CHECK(plan.clones[0].place.offset == 4096);
  CHECK(plan.size == 19100);
  CHECK(plan.copied_bytes == 19100 - 4096);
  std::uint64_t copied = 0;
  for (const FillRun& run : plan.copies) copied += run.length;
  CHECK(copied == plan.copied_bytes);
  CHECK(plan_fill(runs, 0).clones.empty());
  CHECK(plan_fill(runs, 0).copied_bytes == 19100);
}

}  // namespace weft::testing
