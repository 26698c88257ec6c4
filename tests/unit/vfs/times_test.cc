// mtimes. A directory has the time at which an entry last appeared, vanished or changed.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <string_view>

#include "unit/vfs/vfs_fixture.h"
#include "weft/store/fsck.h"

namespace weft::testing {
namespace {

using Times = std::map<std::string, std::uint64_t>;

const Names kDirectories{"models",
                         "models/org",
                         "models/org/m",
                         "models/org/m/1",
                         "layers",
                         "layers/org",
                         "layers/org/m",
                         "layers/org/m/1",
                         "tensors",
                         "tensors/org",
                         "tensors/org/m",
                         "tensors/org/m/1",
                         "safetensors",
                         "safetensors/org",
                         "safetensors/org/m",
                         "safetensors/org/m/1",
                         "lineage",
                         "lineage/org",
                         "lineage/org/m",
                         "lineage/org/m/1",
                         "lineage/org/m/1/parents",
                         "lineage/org/m/1/children",
                         "lineage/org/m/1/diff",
                         "hub",
                         "hub/models--org--m/refs",
                         "hub/models--org--m/snapshots"};
constexpr std::string_view kTrees[] = {"models", "layers", "tensors", "safetensors", "lineage"};

struct TimesFixture : VfsFixture {
  Times times() {
    Times out;
    for (const std::string& path : kDirectories)
      if (const auto attr = walk(*vfs, path); attr.ok()) out[path] = attr->mtime_ns;
    return out;
  }
  // Returns the paths whose times the operation changed, of those that existed before and after it.
  template <class Operation>
  Names changed_by(Operation operation) {
    const Times before = times();
    operation();
    Names out;
    for (const auto& [path, time] : times()) {
      const auto known = before.find(path);
      if (known == before.end() || known->second == time) continue;
      CHECK(time > known->second);
      out.push_back(path);
    }
    return out;
  }
  std::uint64_t time(std::string_view path) { return must(walk(*vfs, path)).mtime_ns; }
};

Names in_each_tree(const Names& below, const Names& more) {
  std::set<std::string> out(more.begin(), more.end());
  for (const std::string_view tree : kTrees)
    for (const std::string& path : below) out.insert(std::string(tree) + path);
  return {out.begin(), out.end()};
}

const Names kHubOfModel{"hub/models--org--m/refs", "hub/models--org--m/snapshots"};

}  // namespace

TEST_CASE("a directory changes when a name appears or goes in it, a model's also with each publish, tag and removal") {
  TimesFixture f;
  f.publish_model("org/m", 1);
  const std::uint64_t published = f.time("models/org/m/1");
  for (const auto& entry : f.times()) {
    CAPTURE(entry.first);
    CHECK(entry.second == published);
  }
  const Names model = in_each_tree({"/org/m"}, kHubOfModel);
  CHECK(f.changed_by([&] { f.publish_model("org/m", 2); }) == model);
  CHECK(f.time("models/org/m") == f.time("models/org/m/2"));
  CHECK(f.changed_by([&] { must(f.store->set_tag("org/m", "prod", 1)); }) == model);
  CHECK(f.time("models/org/m") == f.time("models/org/m/prod"));
  CHECK(f.changed_by([&] { must(f.store->set_tag("org/m", "prod", 2)); }) == model);
  CHECK(f.changed_by([&] { must(f.store->set_tag("org/m", "prod", std::nullopt)); }) == model);
  CHECK(f.changed_by([&] { must(f.store->remove_version("org/m", 2)); }) == model);
  CHECK(f.changed_by([&] { f.publish_model("org/other", 3); }) == in_each_tree({"/org"}, {"hub"}));
  CHECK(f.changed_by([&] { f.publish_model("org/other", 4); }).empty());
  CHECK(f.changed_by([&] { f.publish_model("top", 5); }) == in_each_tree({""}, {"hub"}));
  // the hub cannot show this name
  CHECK(f.changed_by([&] { f.publish_model("new/space/x", 6); }) == in_each_tree({""}, {}));
}

TEST_CASE("the last version of a model takes its names away, and its next one brings them back") {
  TimesFixture f;
  f.publish_model("org/m", 1);
  f.publish_model("org/other", 2);
  f.publish_model("top", 3);
  CHECK(f.changed_by([&] { must(f.store->remove_version("org/m", 1)); }) == in_each_tree({"/org"}, {"hub"}));
  CHECK(f.changed_by([&] { must(f.store->remove_version("org/other", 1)); }) == in_each_tree({""}, {"hub"}));
  CHECK_FALSE(walk(*f.vfs, "models/org").ok());
  const std::uint64_t gone = f.time("models");
  CHECK(f.changed_by([&] { f.publish_model("org/m", 1); }) == in_each_tree({""}, {"hub"}));
  const std::uint64_t back = f.time("models/org/m/2");
  CHECK(back > gone);
  for (const char* path : {"models", "models/org", "models/org/m", "hub", "hub/models--org--m/refs"}) {
    CAPTURE(path);
    CHECK(f.time(path) == back);
  }
}

TEST_CASE("parents/, children/ and diff/ change when kin appear or go, and the version's directory never does") {
  TimesFixture f;
  f.publish_model("base", 1);
  f.publish_model("org/m", 2, {"base"});
  const std::string version = "lineage/org/m/1";
  CHECK(f.changed_by([&] { f.publish_model("kid", 3, {"org/m"}); }) ==
        in_each_tree({""}, {"hub", version + "/children"}));
  CHECK(f.time(version + "/children") == f.time("models/kid/1"));
  CHECK(f.changed_by([&] { f.publish_model("kid", 4); }).empty());
  CHECK(f.changed_by([&] { must(f.store->remove_version("kid", 1)); }) == Names{version + "/children"});
  f.publish_model("base", 5);
  CHECK(f.changed_by([&] { must(f.store->remove_version("base", 1)); }) ==
        Names{version + "/diff", version + "/parents"});
}

TEST_CASE("times are the same after the index was rebuilt") {
  TimesFixture f;
  f.publish_model("org/m", 1);
  f.publish_model("org/m", 2, {"org/m@1"}, {"prod"});
  f.publish_model("org/other", 3);
  f.publish_model("gone/m", 4);
  must(f.store->set_tag("org/m", "prod", std::nullopt));
  must(f.store->remove_version("org/m", 2));
  must(f.store->remove_version("gone/m", 1));
  const Times before = f.times();
  CHECK(before.size() == kDirectories.size());
  f.vfs.reset();
  f.store.reset();
  const FsckReport report = must(Store::rebuild(f.dir / "store", content_decoder(), no_progress()));
  CHECK(report.problems.empty());
  f.store = must(Store::open(f.dir / "store", {}));
  f.restart();
  CHECK(f.times() == before);
}

}  // namespace weft::testing
