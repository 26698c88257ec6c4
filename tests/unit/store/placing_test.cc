// Small publishes, and machines that stop before their files are synced.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>

#include "cluster_support.h"
#include "store/pack_file.h"
#include "store/record.h"
#include "store/toc.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<std::string> fsck(Store& store) {
  FsckOptions options;
  options.data = true;
  return must(store.fsck(options, decode, no_progress())).problems;
}

// m@1, published here, and what journal/placing had while it was not over.
struct Published {
  explicit Published(TestCluster& test) : record_path(test.path + "/journal/placing") {
    mirror(*test.store, {}, 1);
    auto prepared = must(prepare(*test.store, "m", {{1, 2}}, {1, 2}));
    record = read_text(record_path);
    version = prepared->record();
    version.version.number = 1;
    pack = pack_path(test.path, version.packs.at(0));
    toc = toc_path(test.path, version.packs.at(0));
    manifest = test.path + "/manifests/" + to_hex(version.version.manifest);
    prepared->keep();
  }
  bool has_record() const {
    const std::string text = read_text(record_path);
    return record_length(std::as_bytes(std::span(text))).has_value();
  }
  // As the machine comes up that stopped before the files were synced.
  void stop_machine(TestCluster& test, const std::function<void()>& lose) const {
    test.close();
    lose();
    write_file(record_path, record);
  }
  std::string record_path, record, pack, toc, manifest;
  MirroredVersion version;
};

}  // namespace

TEST_CASE("the record of a small publish goes when its files are synced, and when it is given up") {
  TestCluster test;
  const Published published(test);
  CHECK(record_length(std::as_bytes(std::span(published.record))).has_value());
  CHECK(!published.has_record());
  {
    auto given_up = must(prepare(*test.store, "n", {{3}}, {3}));
    CHECK(published.has_record());
    auto beside = must(prepare(*test.store, "o", {{4}}, {4}));  // goes the long way
    beside.reset();
    CHECK(published.has_record());
  }
  CHECK(!published.has_record());
  mirror(*test.store, {published.version}, 2);
  CHECK(reads_well(*test.store, 1));
  CHECK(fsck(*test.store).empty());
  CHECK(std::distance(std::filesystem::directory_iterator(test.path + "/packs"), {}) == 2);
}

TEST_CASE("what a machine that stopped has lost of a small publish is put in place again") {
  using Lose = std::function<void(const Published&)>;
  const Lose losses[] = {
      [](const Published&) {},
      [](const Published& it) {
        for (const std::string& path : {it.pack, it.toc, it.manifest}) std::filesystem::remove(path);
      },
      [](const Published& it) {
        for (const std::string& path : {it.pack, it.toc, it.manifest}) write_file(path, "");
      },
      [](const Published& it) { write_file(it.pack, std::string(read_text(it.pack).size(), '\0')); },
      [](const Published& it) { write_file(it.toc, read_text(it.toc).substr(0, 40)); },
      [](const Published& it) { write_file(it.manifest, std::string(read_text(it.manifest).size(), '\0')); },
      [](const Published& it) { std::filesystem::remove(it.pack); }};
  for (std::size_t i = 0; i < std::size(losses); ++i)
    for (const bool rebuilds : {false, true}) {
      CAPTURE(i);
      CAPTURE(rebuilds);
      TestCluster test;
      const Published published(test);
      published.stop_machine(test, [&] { losses[i](published); });
      if (rebuilds) CHECK(must(Store::rebuild(test.path, decode, no_progress())).problems.empty());
      test.open();
      CHECK(!published.has_record());
      CHECK(fsck(*test.store).empty());
      CHECK(mirror(*test.store, {published.version}, 2).empty());
      CHECK(reads_well(*test.store, 1));
      CHECK(reads_well(*test.store, 2));
      CHECK(fsck(*test.store).empty());
    }
}

TEST_CASE("a check of a store whose daemon has not started again puts in place what a machine that stopped has lost") {
  TestCluster test;
  const Published published(test);
  CHECK(mirror(*test.store, {published.version}, 2).empty());
  const std::string files[] = {published.toc, published.pack, published.manifest};
  published.stop_machine(test, [&] {
    for (const std::string& path : files) std::filesystem::remove(path);
  });
  const auto check = [&] { return must(must(Store::open(test.path, {}))->fsck({}, decode, no_progress())); };

  std::filesystem::create_directory(test.path + "/tmp/placing");  // as where it may not write
  const FsckReport named = check();
  REQUIRE(named.problems.size() > 3);
  for (std::size_t i = 0; i < std::size(files); ++i) {
    CHECK(named.problems[i].starts_with(files[i] + ": "));
    CHECK(named.problems[i].find("weftd puts it in place when it starts") != std::string::npos);
  }
  CHECK(published.has_record());
  std::filesystem::remove(test.path + "/tmp/placing");

  const FsckReport mended = check();
  CHECK_MESSAGE(mended.clean(), mended.problems[0]);
  REQUIRE(mended.repaired.size() == 3);
  for (std::size_t i = 0; i < std::size(files); ++i) CHECK(mended.repaired[i].starts_with(files[i] + ": "));
  CHECK(!published.has_record());
  CHECK(check().repaired.empty());
  test.open();
  CHECK(reads_well(*test.store, 1));
}

TEST_CASE("a check beside a daemon leaves alone what that is placing") {
  TestCluster test;
  auto prepared = must(prepare(*test.store, "m", {{1, 2}}, {1, 2}));
  const std::string record = read_text(test.path + "/journal/placing");
  CHECK(must(must(Store::open(test.path, {}))->fsck({}, decode, no_progress())).clean());
  CHECK(read_text(test.path + "/journal/placing") == record);
  prepared->keep();
}

TEST_CASE("an old record does not undo what became of its pack, and one that is not whole is none") {
  TestCluster test;
  const Published published(test);
  mirror(*test.store, {published.version}, 2);
  published.stop_machine(test, [&] {
    PackToc toc = must(read_toc(published.toc));
    toc.cached = true;
    REQUIRE(write_toc(published.toc, toc).ok());
  });
  test.open();
  CHECK(must(read_toc(published.toc)).cached);
  CHECK(reads_well(*test.store, 1));
  test.close();

  std::filesystem::remove(published.pack);
  std::filesystem::remove(published.toc);
  std::string torn = published.record;
  torn[100] = static_cast<char>(~torn[100]);
  for (const std::string& text : {torn, published.record.substr(0, 50), std::string(), std::string(99, 'x')}) {
    write_file(published.record_path, text);
    test.open();
    CHECK(!std::filesystem::exists(published.pack));
    test.close();
  }
}
