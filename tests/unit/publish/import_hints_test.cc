#include "publish/import_hints.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "fakes/node_fixture.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kOne(40, 'a');
const std::string kTwo(40, 'b');

struct Cache {
  TempDir dir;
  std::string repository = dir / "hub/models--org--bert";
  Cache() {
    write_file(dir / "hub/version.txt", "1");
    for (const std::string& commit : {kOne, kTwo})
      write_file(repository + "/snapshots/" + commit + "/config.json", "{}");
    write_file(repository + "/refs/main", kTwo);
  }
};

HubSnapshot found(const std::string& path) {
  const auto snapshot = must(hub_snapshot(path));
  REQUIRE(snapshot.has_value());
  return *snapshot;
}

}  // namespace

TEST_CASE("a repository of the hub's cache is the snapshot that refs/main names") {
  Cache cache;
  for (const std::string& path : {cache.repository, cache.repository + "/", cache.dir / "hub"}) {
    const HubSnapshot snapshot = found(path);
    CHECK(snapshot.path.ends_with("models--org--bert/snapshots/" + kTwo));
    CHECK(snapshot.name == "org/bert");
    CHECK(snapshot.kind == VersionKind::model);
    CHECK(snapshot.revision == "main");
    CHECK(snapshot.commit == kTwo);
  }
}

TEST_CASE("a snapshot of the hub's cache is itself") {
  Cache cache;
  const HubSnapshot one = found(cache.repository + "/snapshots/" + kOne);
  CHECK(one.name == "org/bert");
  CHECK(one.commit == kOne);
  CHECK(one.revision.empty());
  CHECK(found(cache.repository + "/snapshots/" + kTwo).revision == "main");
}

TEST_CASE("a cache without the snapshot, or with several repositories, is refused by name") {
  Cache cache;
  for (const std::string& lie : {std::string(40, 'c'), std::string("../../../etc"), std::string()}) {
    write_file(cache.repository + "/refs/main", lie);
    CHECK(hub_snapshot(cache.repository).error().message.find("refs/main") != std::string::npos);
  }
  write_file(cache.dir / "hub/datasets--org--c4/snapshots/1/a.txt", "a");
  CHECK(hub_snapshot(cache.dir / "hub").error().message.find("datasets--org--c4") != std::string::npos);
}

TEST_CASE("any other path belongs to no cache") {
  Cache cache;
  write_file(cache.dir / "models--org--x/config.json", "{}");
  for (const std::string& path : {cache.dir / "models--org--x", cache.dir / "none", cache.dir / "hub/version.txt"})
    CHECK_FALSE(must(hub_snapshot(path)).has_value());
}

TEST_CASE("a directory with a repository and files of its own is no cache") {
  Cache cache;
  for (const char* name :
       {"CACHEDIR.TAG", "version_diffusers_cache.txt", ".locks/models--org--bert/x.lock", "spaces--org--app/refs/main"})
    write_file(cache.dir / "hub/" + name, "");
  CHECK(found(cache.dir / "hub").name == "org/bert");
  write_file(cache.dir / "hub/train.py", "");
  CHECK_FALSE(must(hub_snapshot(cache.dir / "hub")).has_value());
}

TEST_CASE("a directory says the name of a model, and a file does not") {
  Cache cache;
  for (const char* name : {"all-MiniLM-L6-v2", "7", "my model", "latest"}) write_file(cache.dir / name + "/x", "x");
  CHECK(name_of_directory(cache.dir / "all-MiniLM-L6-v2/") == "all-MiniLM-L6-v2");
  CHECK(name_of_directory(cache.dir / "7").empty());
  CHECK(name_of_directory(cache.dir / "my model").empty());
  CHECK(name_of_directory(cache.dir / "latest").empty());
  CHECK(name_of_directory(cache.dir / "all-MiniLM-L6-v2/x").empty());
  CHECK(name_of_directory(cache.dir / "none").empty());
}
