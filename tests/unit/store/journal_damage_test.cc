// Damaged journals: in one copy or both, in the middle or at the end.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <random>

#include <fmt/core.h>

#include "catalog/journal.h"
#include "diskformat/record.h"
#include "index_support.h"
#include "os/sys.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

// A store with the places of its records, whose journal and index the test damages.
struct DamagedStore : TestStore {
  std::string log() const { return path + "/journal/0000000000000001.log"; }
  std::string copy() const { return path + "/journal/0000000000000001.copy"; }
  std::uint64_t end() const { return std::filesystem::file_size(log()); }
  void lose_index() const { std::filesystem::remove_all(path + "/index"); }
  static void flip(const std::string& file, std::uint64_t at) {
    std::string bytes = read_text(file);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_file(file, bytes);
  }
  void flip_log(std::uint64_t at) const { flip(log(), at); }
  void flip_copy(std::uint64_t at) const { flip(copy(), kMarksBytes + at); }
  void flip_both(std::uint64_t at) const {
    flip_log(at);
    flip_copy(at);
  }
  // Truncates both files here. The mark stays.
  void cut(std::uint64_t size) const {
    std::filesystem::resize_file(log(), size);
    std::filesystem::resize_file(copy(), kMarksBytes + size);
  }
  FsckReport rebuild(bool accept_loss = false) const {
    return Store::rebuild(path, decode, no_progress(), {accept_loss, {}}).value();
  }
  std::string state() const { return dump(*Store::open(path, {}).value(), false); }
  std::vector<std::string> fsck() const { return open_store(path)->fsck({}, decode, no_progress()).value().problems; }
};

bool says(const std::vector<std::string>& lines, std::string_view what) {
  for (const std::string& line : lines)
    if (line.find(what) != std::string::npos) return true;
  return false;
}

// Makes publishes, tags and removals, in namespaces. Returns the offset of each record.
std::vector<std::uint64_t> live(const DamagedStore& test) {
  auto store = open_store(test.path);
  std::vector<std::uint64_t> begins;
  auto step = [&](const std::function<bool()>& what) {
    begins.push_back(test.end());
    REQUIRE(what());
  };
  step([&] { return publish(*store, "org/a", {{1, 2}}).ok(); });
  step([&] { return publish(*store, "org/a", {{1, 3}}, {{{"org/a", 1}}, {"t"}}).ok(); });
  step([&] { return publish(*store, "b", {{2, 4}}).ok(); });
  step([&] { return store->set_tag("org/a", "x", 1).ok(); });
  step([&] { return store->remove_version("org/a", 2).ok(); });
  step([&] { return publish(*store, "org/a", {{5}}).ok(); });
  step([&] { return store->set_tag("b", "y", 1).ok(); });
  return begins;
}

}  // namespace

TEST_CASE("a record that is damaged in one copy is whole in the other") {
  for (bool log : {true, false})
    for (std::size_t record = 0; record < 7; ++record) {
      CAPTURE(log);
      CAPTURE(record);
      DamagedStore test;
      std::vector<std::uint64_t> begins = live(test);
      std::string before = test.state();
      std::string journal = read_text(test.log());
      std::uint64_t at = begins[record] + 8 + record * 5;  // hits lengths, kinds and payloads
      log ? test.flip_log(at) : test.flip_copy(at);
      CHECK(test.fsck().size() == 1);
      test.lose_index();
      FsckReport report = test.rebuild();
      CHECK(report.rebuilt);
      CHECK(report.problems == std::vector<std::string>{});
      CHECK(report.repaired.size() == 1);
      CHECK(test.state() == before);
      CHECK(read_text(test.log()) == journal);
      CHECK(read_text(test.copy()).substr(kMarksBytes) == journal);
      CHECK(test.fsck() == std::vector<std::string>{});
    }
}

TEST_CASE("either file of the journal alone is enough") {
  for (bool log : {true, false}) {
    DamagedStore test;
    live(test);
    std::string before = test.state();
    std::filesystem::remove(log ? test.copy() : test.log());
    test.lose_index();
    CHECK(test.rebuild().rebuilt);
    CHECK(test.state() == before);
    CHECK(test.fsck() == std::vector<std::string>{});
    must_publish(*open_store(test.path), "b", {{9}});
    CHECK(test.fsck() == std::vector<std::string>{});
  }
}

TEST_CASE("a rebuild refuses to drop a record that is lost in both copies") {
  for (std::size_t record = 0; record < 7; ++record) {
    CAPTURE(record);
    DamagedStore test;
    std::vector<std::uint64_t> begins = live(test);
    test.flip_both(begins[record] + 40);
    test.lose_index();
    std::string journal = read_text(test.log());
    FsckReport report = test.rebuild();
    CHECK(report.refused);
    CHECK_FALSE(report.rebuilt);
    CHECK_FALSE(report.clean());
    CHECK_FALSE(std::filesystem::exists(test.path + "/index/data.mdb"));
    CHECK(read_text(test.log()) == journal);

    report = test.rebuild(true);
    CHECK(report.rebuilt);
    CHECK(report.problems == std::vector<std::string>{});
    CHECK_FALSE(report.lost.empty());
    std::string after = test.state();
    CHECK(test.fsck() == std::vector<std::string>{});
    test.lose_index();
    report = test.rebuild();  // the journal remembers the accepted loss
    CHECK(report.rebuilt);
    CHECK(report.lost.empty());
    CHECK(test.state() == after);
    CHECK(test.fsck() == std::vector<std::string>{});
  }
}

TEST_CASE("records after a lost one stay, and the lost ones are named") {
  DamagedStore test;
  std::vector<std::uint64_t> begins = live(test);
  test.flip_both(begins[1] + 40);  // the record of org/a@2, which is removed later
  test.flip_both(begins[2] + 40);  // the record of b@1 with its tag
  FsckReport report = test.rebuild(true);
  CHECK(says(report.lost, "org/a@2"));
  CHECK(says(report.lost, "b@1"));
  CHECK(says(report.lost, "tag y of b"));
  auto store = open_store(test.path);
  auto snapshot = store->snapshot().value();
  ModelRow a = snapshot->model("org/a").value();
  CHECK(a.latest == 3);
  CHECK(snapshot->version(a.id, 2).error().code == Errc::not_found);
  CHECK(snapshot->tag(a.id, "x").value().number == 1);
  CHECK(snapshot->namespace_entry("org", "a").ok());
  CHECK(snapshot->model("b").error().code == Errc::not_found);
}

TEST_CASE("a namespace outlives the record that made it") {
  DamagedStore test;
  std::vector<std::uint64_t> begins = live(test);
  std::string inode;
  {
    auto snapshot = open_store(test.path)->snapshot().value();
    inode =
        fmt::format("{} {}", snapshot->namespace_entry("", "org").value().ino, snapshot->model("org/a")->created_ns);
  }
  test.flip_both(begins[0] + 40);
  CHECK(test.rebuild(true).rebuilt);
  auto snapshot = open_store(test.path)->snapshot().value();
  CHECK(fmt::format("{} {}", snapshot->namespace_entry("", "org").value().ino, snapshot->model("org/a")->created_ns) ==
        inode);
}

TEST_CASE("numbers that a lost tail gave are not given again") {
  DamagedStore test;
  std::uint64_t tail = 0;
  VersionRow last;
  Ino ino = 0;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1}});
    tail = test.end();
    must_publish(*store, "m", {{2}});
    must_publish(*store, "gone", {{3}});
    last = must_publish(*store, "m", {{4}}).version;
    ino = store->snapshot().value()->local(last.id).value().ino_base;
  }
  test.cut(tail);
  CHECK(publish(*open_store(test.path), "m", {{9}}).error().code == Errc::corrupt);
  test.lose_index();
  FsckReport report = test.rebuild();
  CHECK(report.refused);
  CHECK(says(report.problems, "3 publishes more are lost"));
  CHECK(test.rebuild(true).rebuilt);
  auto store = open_store(test.path);
  VersionRow next = must_publish(*store, "m", {{5}}).version;
  CHECK(next.number > last.number);
  CHECK(next.id > last.id);
  CHECK(store->snapshot().value()->local(next.id).value().ino_base > ino);
  CHECK(must_publish(*store, "gone", {{6}}).version.number > 1);
  CHECK(must_publish(*store, "gone", {{7}}).version.number > 2);
  CHECK(store->snapshot().value()->versions(next.model).value().rows.size() == 2);
  CHECK(test.fsck() == std::vector<std::string>{});
  std::string before = test.state();
  store.reset();
  test.lose_index();
  CHECK(test.rebuild().clean());
  CHECK(test.state() == before);
}

TEST_CASE("a removal that is lost with the journal's end is refused, not undone") {
  DamagedStore test;
  std::uint64_t tail = 0;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1}});
    must_publish(*store, "m", {{2}});
    tail = test.end();
    REQUIRE(store->remove_version("m", 1).ok());
  }
  test.cut(tail);
  test.lose_index();
  CHECK(test.rebuild().refused);
}

TEST_CASE("a record that was never whole is no loss") {
  DamagedStore test;
  live(test);
  std::string before = test.state();
  std::string journal = read_text(test.log());
  write_file(test.log(), journal + journal.substr(0, 50));  // a writer died during the write
  test.lose_index();
  FsckReport report = test.rebuild();
  CHECK(report.rebuilt);
  CHECK(report.clean());
  CHECK(test.state() == before);
  CHECK(read_text(test.log()) == journal);
}

TEST_CASE("a record at another offset is ignored") {
  DamagedStore test;
  std::vector<std::uint64_t> begins = live(test);
  std::string before = test.state();
  std::string journal = read_text(test.log());
  std::string record = journal.substr(begins[0], begins[1] - begins[0]);
  write_file(test.log(), journal + record);
  write_file(test.copy(), read_text(test.copy()) + record);
  test.lose_index();
  CHECK(test.rebuild().rebuilt);
  CHECK(test.state() == before);
}

TEST_CASE("a journal with an unknown kind of event is refused and unchanged") {
  DamagedStore test;
  live(test);
  {
    auto store = open_store(test.path);
    const Journal journal(safe(test.path));
    const auto record = seal_record(static_cast<RecordKind>(static_cast<int>(RecordKind::counters) - 1), {});
    Counters counters = journal.mark().value().value();
    counters.journal_end += record.size();
    REQUIRE(journal.append(record, counters).ok());
    CHECK(journal.read(0).error().code == Errc::unsupported);
    CHECK(store->set_tag("b", "z", 1).error().code == Errc::unsupported);
  }
  const std::string log = read_text(test.log());
  CHECK(Store::rebuild(test.path, decode, no_progress()).error().code == Errc::unsupported);
  CHECK(read_text(test.log()) == log);
}

TEST_CASE("a rebuild that died after its repair is finished by the next") {
  DamagedStore test;
  std::vector<std::uint64_t> begins = live(test);
  test.flip_both(begins[2] + 40);
  std::filesystem::copy(test.path + "/index", test.dir / "old-index", std::filesystem::copy_options::recursive);
  CHECK(test.rebuild(true).rebuilt);
  std::string after = test.state();
  std::filesystem::remove_all(test.path + "/index");
  std::filesystem::copy(test.dir / "old-index", test.path + "/index", std::filesystem::copy_options::recursive);
  auto refused = open_store(test.path)->parts().index.lock();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("weft fsck --rebuild") != std::string::npos);
  CHECK(test.rebuild().clean());
  CHECK(test.state() == after);
}

TEST_CASE("bits that flip anywhere in one file of the journal lose nothing") {
  std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  std::mt19937_64 random(seed);
  DamagedStore test;
  live(test);
  std::string before = test.state();
  const std::string log = read_text(test.log());
  const std::string copy = read_text(test.copy());
  for (int round = 0; round < 60; ++round) {
    const std::string& whole = round % 2 == 0 ? log : copy;
    std::string bytes = whole;
    for (int flips = 0; flips < 1 + round / 10; ++flips) {
      std::size_t at = random() % bytes.size();
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
    }
    write_file(round % 2 == 0 ? test.log() : test.copy(), bytes);
    test.lose_index();
    FsckReport report = test.rebuild();
    CHECK(report.rebuilt);
    CHECK(report.problems == std::vector<std::string>{});
    CHECK(test.state() == before);
    write_file(test.log(), log);
    write_file(test.copy(), copy);
  }
}
