// Versions that are open: gc, rebuilds and evictions leave all their content in place.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <functional>

#include "index_support.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<std::string> fsck(StoreImpl& store) {
  return store.fsck({}, decode, no_progress()).value().problems;
}

// Calls a function when gc comes to the packs, after it has reaped versions.
class AtPacks final : public Progress {
 public:
  explicit AtPacks(std::function<void()> work) : work_(std::move(work)) {}
  void total(std::uint64_t) override {}
  void advance(std::uint64_t) override {}
  void phase(std::string_view what) override {
    if (what == "collecting packs") work_();
  }
  bool cancelled() const override { return false; }

 private:
  std::function<void()> work_;
};

// Publishes a version with packs of its own, as an import makes them.
VersionRow import_version(StoreImpl& store, const TestStore& test, const std::string& model, const Files& files) {
  auto import = store.begin_import(Durability::local).value();
  for (const std::vector<unsigned>& file : files) {
    std::vector<std::byte> bytes;
    std::vector<Range> ranges;
    for (unsigned n : file) {
      const auto content = content_bytes(n);
      ranges.push_back({bytes.size(), content.size()});
      bytes.insert(bytes.end(), content.begin(), content.end());
    }
    write_file(test.dir / "source", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const Fd fd = open_file(test.dir / "source", O_RDONLY).value();
    REQUIRE(import->add(fd.get(), "source", ranges, no_progress()).ok());
  }
  PublishRequest request;
  request.model = model;
  request.content = make_content(files);
  request.manifest = manifest_of(files);
  return import->publish(request).value().version;
}

bool reads_well(Store& store, unsigned n) {
  const auto place = store.open_blob(content_id(n));
  if (!place.ok()) return false;
  std::vector<std::byte> got(content_bytes(n).size());
  REQUIRE(read_exact(place->pack->fd(), place->offset, got, "pack").ok());
  return got == content_bytes(n);
}

bool is_whole(Store& store, const VersionRow& version, std::initializer_list<unsigned> contents) {
  const auto snapshot = store.snapshot().value();
  const auto local = snapshot->local(version.id);
  if (!local.ok() || !snapshot->inode(local->ino_base).ok() || !store.open_manifest(version.manifest).ok())
    return false;
  for (const Ino ino : local->view_inos)
    if (!snapshot->inode(ino).ok()) return false;
  for (const unsigned n : contents)
    if (!reads_well(store, n)) return false;
  return true;
}

std::uint64_t open_removed(Store& store) {
  return store.open_removed().value();
}

}  // namespace

TEST_CASE("a removed version that is open stays whole, and goes once it is closed") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionRow version = import_version(*store, test, "m", {{1, 2}, {3}});
  import_version(*store, test, "n", {{3, 4}});
  VersionHold hold = store->hold_version(version.id).value();
  VersionHold again = store->hold_version(version.id).value();
  REQUIRE(store->remove_version("m", 1).ok());
  CHECK(open_removed(*store) == 1);
  for (bool dry_run : {true, false, false}) {
    CAPTURE(dry_run);
    GcOptions options;
    options.dry_run = dry_run;
    const GcReport report = store->gc(options, no_progress()).value();
    CHECK(report.versions_reaped == 0);
    CHECK(report.versions_open == 1);
    CHECK(report.blobs_freed == 0);
    CHECK(is_whole(*store, version, {1, 2, 3}));
    CHECK(fsck(*store) == std::vector<std::string>{});
  }
  hold.reset();
  CHECK(store->gc({}, no_progress()).value().versions_open == 1);
  again.reset();
  CHECK(open_removed(*store) == 0);
  const GcReport report = store->gc({}, no_progress()).value();
  CHECK(report.versions_reaped == 1);
  CHECK(report.versions_open == 0);
  CHECK(report.blobs_freed == 2);
  CHECK_FALSE(reads_well(*store, 1));
  CHECK(reads_well(*store, 3));
  CHECK(store->hold_version(version.id).error().code == Errc::not_found);
  CHECK(fsck(*store) == std::vector<std::string>{});
}

TEST_CASE("a version that is removed while gc runs, and is open, stays whole too") {
  TestStore test;
  auto store = open_store(test.path);
  auto other = open_store(test.path);
  const VersionRow version = import_version(*store, test, "m", {{1, 2}});
  import_version(*store, test, "n", {{2, 3}});
  VersionHold hold;
  AtPacks progress([&] {
    hold = other->hold_version(version.id).value();
    REQUIRE(other->remove_version("m", 1).ok());
  });
  REQUIRE(store->gc({}, progress).ok());
  CHECK(is_whole(*other, version, {1, 2}));
  hold.reset();
  CHECK(store->gc({}, no_progress()).value().versions_reaped == 1);
  CHECK_FALSE(reads_well(*store, 1));
}

TEST_CASE("a removed version is held as long as gc has not come") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionRow version = import_version(*store, test, "m", {{1}});
  REQUIRE(store->remove_version("m", 1).ok());
  const VersionHold hold = store->hold_version(version.id).value();
  CHECK(store->gc({}, no_progress()).value().versions_open == 1);
  CHECK(is_whole(*store, version, {1}));
  CHECK(store->hold_version(version.id + 1).error().code == Errc::not_found);
}

TEST_CASE("holds through an inherited file description outlive the process, until the next one releases them") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionRow kept = import_version(*store, test, "m", {{1}});
  const VersionRow left = import_version(*store, test, "m", {{2}});
  const Fd inherited = must(open_versions_file(test.path));
  OpenOptions options;
  options.open_versions = inherited.get();
  const auto hold_and_die = [&] {
    auto mount = Store::open(test.path, options).value();
    static std::vector<VersionHold> holds;
    for (const VersionRow& version : {kept, left}) holds.push_back(mount->hold_version(version.id).value());
    ::_exit(0);
    return true;
  };
  REQUIRE(exited(in_child(hold_and_die)));
  for (std::uint64_t number : {1, 2}) REQUIRE(store->remove_version("m", number).ok());
  CHECK(store->gc({}, no_progress()).value().versions_open == 2);
  auto next = Store::open(test.path, options).value();
  CHECK(store->gc({}, no_progress()).value().versions_open == 2);
  auto holds = next->take_over_holds(std::span(&kept.id, 1)).value();
  REQUIRE(holds.size() == 1);
  CHECK(store->gc({}, no_progress()).value().versions_reaped == 1);
  CHECK(is_whole(*store, kept, {1}));
  CHECK(is_whole(*next, kept, {1}));
  CHECK_FALSE(reads_well(*store, 2));
  holds.clear();
  CHECK(store->gc({}, no_progress()).value().versions_reaped == 1);
}

TEST_CASE("a rebuild keeps removed versions that are open") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionRow open = import_version(*store, test, "m", {{1, 2}});
  const VersionRow closed = import_version(*store, test, "m", {{2, 3}});
  const LocalRow local = store->snapshot().value()->local(open.id).value();
  VersionHold hold = store->hold_version(open.id).value();
  for (std::uint64_t number : {1, 2}) REQUIRE(store->remove_version("m", number).ok());
  REQUIRE(Store::rebuild(test.path, decode, no_progress()).value().clean());
  CHECK(is_whole(*store, open, {1, 2}));
  CHECK(store->snapshot().value()->local(open.id).value().view_inos == local.view_inos);
  CHECK(store->hold_version(closed.id).error().code == Errc::not_found);
  CHECK(fsck(*store) == std::vector<std::string>{});
  CHECK(store->gc({}, no_progress()).value().versions_open == 1);
  CHECK(is_whole(*store, open, {1, 2}));
  CHECK_FALSE(reads_well(*store, 3));
  hold.reset();
  CHECK(store->gc({}, no_progress()).value().versions_reaped == 1);
  CHECK(fsck(*store) == std::vector<std::string>{});
}

TEST_CASE("keeper() returns a version with the view, a live one if possible") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionRow first = import_version(*store, test, "m", {{1}});
  const VersionRow second = import_version(*store, test, "m", {{1, 2}});
  const Ino shared = store->snapshot().value()->local(first.id).value().view_inos[0];
  const auto keeper = [&] {
    const auto snapshot = store->snapshot().value();
    return store->keeper(snapshot->inode(shared).value()).value();
  };
  CHECK(keeper() == first.id);
  REQUIRE(store->remove_version("m", 1).ok());
  CHECK(keeper() == second.id);
  REQUIRE(store->gc({}, no_progress()).value().versions_reaped == 1);
  CHECK(keeper() == second.id);
  const VersionHold hold = store->hold_version(second.id).value();
  REQUIRE(store->remove_version("m", 2).ok());
  CHECK(keeper() == second.id);
  REQUIRE(store->gc({}, no_progress()).value().versions_open == 1);
  CHECK(keeper() == second.id);
}

TEST_CASE("a user outside the store's group cannot lock versions") {
  TestStore test;
  CHECK((stat_file(test.path + "/index/open")->st_mode & 0777) == 0640);
}
