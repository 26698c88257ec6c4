// Publishes of versions whose content takes several transactions.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "catalog/attach.h"
#include "index_support.h"
#include "weft/store/walk.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr unsigned kMany = limits::kBatchRows + 100;  // number of blobs and of views
constexpr int kParts = 4;                             // the first part gives the version its id

Files large_files() {
  std::vector<unsigned> contents;
  for (unsigned n = 0; n < kMany; ++n) contents.push_back(n);
  return {contents};
}

// A store with one small version. The large version has its content too.
struct Ground {
  Ground() { must_publish(*open_store(test.path), "small", {{5, 6}}); }
  TestStore test;
};

bool is_sound(StoreImpl& store) {
  const auto problems = must(store.fsck({}, decode, no_progress())).problems;
  for (const std::string& problem : problems) CHECK(problem.empty());
  return problems.empty();
}

bool is_under_way(StoreImpl& store) {
  Txn txn = must(store.parts().index.read());
  return must(find_under_way(txn)).has_value();
}

// Returns what readers see, except the stored bytes.
std::string shown(StoreImpl& store) {
  auto snapshot = must(store.snapshot());
  std::string out;
  for (const ModelRow& model : must(snapshot->models()).rows)
    for (const VersionRow& row : must(snapshot->versions(model.id)).rows)
      out += row.model_name + "@" + std::to_string(row.number) + "\n";
  const StoreCounts counts = must(store.counts());
  return out + std::to_string(counts.models) + " " + std::to_string(counts.versions) + " " +
         std::to_string(counts.views) + "\n";
}

// Publishes the large version in a child that is killed after `parts` parts.
bool killed_after(const std::string& path, int parts, const std::function<void(StoreImpl&)>& between = {}) {
  const int status = in_child([&] {
    std::unique_ptr<StoreImpl> store;
    CommitHooks hooks;
    hooks.after_part = [&, left = parts]() mutable {
      if (--left == 0 && between) between(*store);
      if (left == 0) ::kill(::getpid(), SIGKILL);
    };
    store = open_store(path, write_options(), hooks);
    must_publish(*store, "large", large_files());
    return true;
  });
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace

TEST_CASE("a large version takes its content in parts, which no reader sees before the commit") {
  const Ground ground;
  std::unique_ptr<StoreImpl> store;
  std::string before;
  int parts = 0;
  CommitHooks hooks;
  hooks.after_part = [&] {
    ++parts;
    CHECK(is_under_way(*store));
    CHECK(shown(*store) == before);
  };
  store = open_store(ground.test.path, write_options(), hooks);
  before = shown(*store);
  const PublishOutcome outcome = must_publish(*store, "large", large_files(), {{{"small", 1}}, {"tag"}});
  CHECK(parts == kParts);
  CHECK(outcome.made);
  CHECK(outcome.new_bytes == outcome.version.logical_bytes - 2011);
  CHECK(outcome.shared_bytes == 2011);
  CHECK_FALSE(is_under_way(*store));
  CHECK(must(store->counts()).versions == 2);
  CHECK(must(store->counts()).views == kMany);
  CHECK(must(store->counts()).blobs == kMany);
  CHECK(must(store->counts()).dead_bytes == 0);
  Renewed renewed(*store);
  CHECK(must(owned_bytes(renewed, outcome.version.id)) == outcome.new_bytes);
  CHECK(is_sound(*store));
  const FsckOptions rebuild{.rebuild = true};
  const std::string whole = dump(*store, false);
  CHECK(must(store->fsck(rebuild, decode, no_progress())).rebuilt);
  CHECK(dump(*store, false) == whole);
}

TEST_CASE("between the parts others publish what the large version has, tag and remove") {
  const Ground ground;
  std::unique_ptr<StoreImpl> store;
  int parts = 0;
  CommitHooks hooks;
  hooks.after_part = [&] {
    if (++parts > kParts) return;
    const std::string model = "beside" + std::to_string(parts);
    must_publish(*store, model, {{0, 1, 5, 2000, kMany - 1}, {9000U + static_cast<unsigned>(parts)}});
    must(store->set_tag(model, "t", 1));
    if (parts == 2) must(store->remove_version("beside1", 1));
    if (parts == 3) must(store->remove_version("small", 1));
  };
  store = open_store(ground.test.path, write_options(), hooks);
  const PublishOutcome outcome = must_publish(*store, "large", large_files());
  CHECK(parts == kParts);
  CHECK(must(must(store->snapshot())->owner(content_id(0)))->first == outcome.version.id);
  CHECK(is_sound(*store));
  must(store->gc({}, no_progress()));
  CHECK(is_sound(*store));
  must(store->remove_version("large", 1));
  must(store->gc({}, no_progress()));
  CHECK(is_sound(*store));
  CHECK(must(store->counts()).blobs == 5 + 3);
}

TEST_CASE("a large publish that dies after any part leaves nothing once gc has run") {
  const Ground ground;
  const std::string before = shown(*open_store(ground.test.path));
  for (int parts = 1; parts <= kParts; ++parts) {
    CAPTURE(parts);
    REQUIRE(killed_after(ground.test.path, parts));
    const auto store = open_store(ground.test.path);
    CHECK(is_under_way(*store));
    CHECK(shown(*store) == before);
    must(store->gc({}, no_progress()));
    CHECK_FALSE(is_under_way(*store));
    CHECK(is_sound(*store));
    CHECK(must(store->counts()).blobs == 2);
    CHECK(must(store->counts()).dead_bytes == 0);
    CHECK(must(store->counts()).packs == 1);
    CHECK(shown(*store) == before);
  }
}

TEST_CASE("a check of what a dead publish left finds a sound store, and a rebuild too") {
  const Ground ground;
  REQUIRE(killed_after(ground.test.path, 3));
  CHECK(is_sound(*open_store(ground.test.path)));
  CHECK_FALSE(is_under_way(*open_store(ground.test.path)));

  REQUIRE(killed_after(ground.test.path, 3));
  OpenOptions reading = write_options();
  reading.write = false;
  const auto problems = must(open_store(ground.test.path, reading)->fsck({}, decode, no_progress())).problems;
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().find("a publish of large ended before its commit; `weft gc` gives back its space") !=
        std::string::npos);
  const auto store = open_store(ground.test.path);
  const FsckOptions rebuild{.rebuild = true};
  CHECK(must(store->fsck(rebuild, decode, no_progress())).rebuilt);
  CHECK_FALSE(is_under_way(*store));
  CHECK(is_sound(*store));
}

TEST_CASE("publishes beside an abandoned large publish keep their content") {
  const Ground ground;
  for (int parts = 1; parts <= kParts; ++parts) {
    CAPTURE(parts);
    const std::string model = "beside" + std::to_string(parts);
    REQUIRE(killed_after(ground.test.path, parts, [&](StoreImpl& store) {
      must_publish(store, model, {{0, 1, 5, 2000, kMany - 1}});
    }));
    const auto store = open_store(ground.test.path);
    if (parts % 2 == 0) must(store->gc({}, no_progress()));
    CHECK(is_sound(*store));
    const VersionRow version =
        must(must(store->snapshot())->version(must(must(store->snapshot())->model(model)).id, 1));
    Renewed renewed(*store);
    CHECK(must(owned_bytes(renewed, version.id)) == (parts == 1 ? version.logical_bytes - 1005 : 0));
  }
}

TEST_CASE("the next large publish gives back what a dead one left") {
  const Ground ground;
  REQUIRE(killed_after(ground.test.path, 3));
  const auto store = open_store(ground.test.path);
  CHECK(must_publish(*store, "large", large_files()).made);
  CHECK_FALSE(is_under_way(*store));
  CHECK(must(store->counts()).versions == 2);
  CHECK(is_sound(*store));
}

TEST_CASE("a large publish that is journaled and dies is made live by the next writer") {
  const Ground ground;
  const int status = in_child([&] {
    CommitHooks hooks;
    hooks.after_journal = [] { ::kill(::getpid(), SIGKILL); };
    must_publish(*open_store(ground.test.path, write_options(), hooks), "large", large_files());
    return true;
  });
  REQUIRE(WIFSIGNALED(status));
  const auto store = open_store(ground.test.path);
  must(store->parts().index.lock());
  CHECK_FALSE(is_under_way(*store));
  CHECK(must(store->counts()).versions == 2);
  CHECK(is_sound(*store));
}

TEST_CASE("a large version that another publishes meanwhile is made once") {
  const Ground ground;
  std::unique_ptr<StoreImpl> store;
  bool first = true;
  CommitHooks hooks;
  const auto other = open_store(ground.test.path);
  must_publish(*other, "large", {{1}});
  hooks.after_part = [&] {
    if (!std::exchange(first, false)) return;
    must_publish(*store, "small", {{7}});
    must(store->remove_version("large", 1));
  };
  store = open_store(ground.test.path, write_options(), hooks);
  const PublishOutcome outcome = must_publish(*store, "large", large_files());
  CHECK(outcome.made);
  CHECK(outcome.version.number == 2);
  CHECK_FALSE(must_publish(*store, "large", large_files(), {{}, {"again"}}).made);
  CHECK(must(must(store->snapshot())->tag(outcome.version.model, "again")).number == 2);
  CHECK_FALSE(is_under_way(*store));
  CHECK(is_sound(*store));
}

TEST_CASE("a large publish whose parent goes before its commit fails, and leaves nothing") {
  const Ground ground;
  std::unique_ptr<StoreImpl> store;
  int parts = 0;
  CommitHooks hooks;
  hooks.after_part = [&] {
    if (++parts == 2) must(store->remove_version("small", 1));
  };
  store = open_store(ground.test.path, write_options(), hooks);
  ParentRef parent{"small", 1};
  parent.declared = true;
  CHECK(publish(*store, "large", large_files(), {{parent}, {}}).error().code == Errc::not_found);
  CHECK_FALSE(is_under_way(*store));
  CHECK(is_sound(*store));
  must(store->gc({}, no_progress()));
  CHECK(must(store->counts()).blobs == 0);
  CHECK(is_sound(*store));
}

TEST_CASE("an import that is sealed has its manifest on the disk, and gives it its name even if gc took it") {
  TestStore test;
  const auto store = open_store(test.path);
  write_file(test.dir / "source", as_text(content_bytes(1)));
  const Fd source = must(open_file(test.dir / "source", O_RDONLY));
  const Range range{0, content_bytes(1).size()};
  PublishRequest request;
  request.model = "m";
  for (const bool taken : {false, true}) {
    const Files files{{1}, std::vector<unsigned>(taken ? 1 : 0, 1)};
    auto import = must(store->begin_import(Durability::local));
    request.content = make_content(files);
    must(import->add(source.get(), "source", std::span(&range, 1), no_progress()));
    must(import->seal([&files](const auto& use) { return use(manifest_of(files)); }));
    CHECK(import->seal([&files](const auto& use) { return use(manifest_of(files)); }).error().code == Errc::internal);
    if (taken) must(store->gc({}, no_progress()));
    const VersionRow version = must(import->publish(request)).version;
    const auto manifest = must(store->open_manifest(version.manifest));
    CHECK(std::ranges::equal(manifest->bytes(), manifest_of(files)));
  }
  CHECK(is_sound(*store));
}
