// hub/: the Hugging Face hub's cache layout.
#include <doctest/doctest.h>

#include <string>

#include "unit/vfs/vfs_fixture.h"
#include "vfs/numbers.h"

namespace weft::testing {
namespace {

struct HubFixture : VfsFixture {
  // Returns the first 40 hex digits of the digest of a version's manifest.
  std::string hash(std::string_view spec) const { return to_hex(must(resolve(spec)).manifest).substr(0, 40); }
  std::string ref(const std::string& name) { return read_path(*vfs, "hub/models--org--m/refs/" + name); }
};

const std::string kModel = "hub/models--org--m";

}  // namespace

TEST_CASE("a model has refs/ and snapshots/, and a ref is 40 digits without a newline") {
  HubFixture f;
  f.publish_model("org/m", 1);
  f.publish_model("org/m", 2, {}, {"prod"});
  f.publish_model("bert", 3);
  f.publish_model("a/b/c", 4);
  f.publish_model("a+b", 5);
  CHECK(names_in(*f.vfs, "hub") == Names{"models--bert", "models--org--m"});
  CHECK(names_in(*f.vfs, kModel) == Names{"refs", "snapshots"});
  CHECK(names_in(*f.vfs, kModel + "/refs") == Names{"1", "2", "main", "prod"});
  CHECK(f.ref("1") == f.hash("org/m@1"));
  for (const char* name : {"2", "main", "prod"}) CHECK(f.ref(name) == f.hash("org/m@2"));
  CHECK(names_in(*f.vfs, kModel + "/snapshots").size() == 2);
  for (const Ino ino : {ino_at(*f.vfs, kModel + "/refs/main"), ino_at(*f.vfs, kModel + "/refs/prod")})
    CHECK(must(f.vfs->open(ino))->mode() == ReadMode::changing);
}

TEST_CASE("a snapshot has the files of models/, and directories of its own") {
  HubFixture f;
  f.publish_model("org/m", 1);
  const std::string snapshot = kModel + "/snapshots/" + f.hash("org/m@1");
  CHECK(names_in(*f.vfs, snapshot) == names_in(*f.vfs, "models/org/m/1"));
  for (const std::string file : {"/model.safetensors", "/1_Pooling/config.json", "/empty.txt"}) {
    const Attr there = must(walk(*f.vfs, snapshot + file));
    CHECK(there.ino == ino_at(*f.vfs, "models/org/m/1" + file));
    CHECK(there.nlink == 2);
  }
  for (const std::string dir : {"", "/1_Pooling"})
    CHECK(ino_at(*f.vfs, snapshot + dir) != ino_at(*f.vfs, "models/org/m/1" + dir));
  CHECK(must(f.vfs->parent(ino_at(*f.vfs, snapshot + "/1_Pooling"))) == ino_at(*f.vfs, snapshot));
  for (const std::string& name : {f.hash("org/m@1").substr(1), f.hash("org/m@1") + "0", std::string(40, '0'),
                                  std::string(40, 'g'), std::string("main"), std::string("1")}) {
    CAPTURE(name);
    CHECK(walk(*f.vfs, kModel + "/snapshots/" + name).error().code == Errc::not_found);
  }
}

TEST_CASE("upper case is no revision's name") {
  HubFixture f;
  f.publish_model("org/m", 1);
  std::string name = f.hash("org/m@1");
  const std::string lower = name;
  for (char& c : name)
    if (c >= 'a' && c <= 'f') c = static_cast<char>(c - 'a' + 'A');
  REQUIRE(name != lower);
  CHECK(walk(*f.vfs, kModel + "/snapshots/" + name).error().code == Errc::not_found);
}

TEST_CASE("versions with one content share a snapshot, which shows the files of the oldest live one") {
  HubFixture f;
  f.publish_model("org/m", 1);
  f.publish_model("org/m", 2);
  f.publish_model("org/m", 1);
  const auto nlink = [&](const std::string& version) {
    return must(walk(*f.vfs, "models/org/m/" + version + "/model.safetensors")).nlink;
  };
  REQUIRE(f.hash("org/m@1") == f.hash("org/m@3"));
  CHECK(names_in(*f.vfs, kModel + "/snapshots").size() == 2);
  CHECK(f.ref("1") == f.ref("3"));
  const std::string file = kModel + "/snapshots/" + f.hash("org/m@1") + "/model.safetensors";
  CHECK(ino_at(*f.vfs, file) == ino_at(*f.vfs, "models/org/m/1/model.safetensors"));
  CHECK(nlink("1") == 2);
  CHECK(nlink("3") == 1);
  must(f.store->remove_version("org/m", 1));
  CHECK(ino_at(*f.vfs, file) == ino_at(*f.vfs, "models/org/m/3/model.safetensors"));
  CHECK(nlink("3") == 2);
  must(f.store->remove_version("org/m", 3));
  CHECK(walk(*f.vfs, file).error().code == Errc::not_found);
}

TEST_CASE("main is the tag of that name, or else the newest version") {
  HubFixture f;
  f.publish_model("org/m", 1);
  f.publish_model("org/m", 2);
  const Ino main = ino_at(*f.vfs, kModel + "/refs/main");
  CHECK(f.ref("main") == f.hash("org/m@2"));
  must(f.store->set_tag("org/m", "main", 1));
  CHECK(f.ref("main") == f.hash("org/m@1"));
  CHECK(names_in(*f.vfs, kModel + "/refs") == Names{"1", "2", "main"});
  must(f.store->set_tag("org/m", "main", std::nullopt));
  must(f.store->remove_version("org/m", 2));
  CHECK(f.ref("main") == f.hash("org/m@1"));
  CHECK(ino_at(*f.vfs, kModel + "/refs/main") == main);
  must(f.store->remove_version("org/m", 1));
  CHECK(walk(*f.vfs, kModel).error().code == Errc::not_found);
  CHECK(names_in(*f.vfs, "hub").empty());
}

TEST_CASE("a published file has a place in models/, and one in hub/ if it stands there") {
  HubFixture f;
  f.publish_model("org/m", 1);
  f.publish_model("org/m", 2);
  f.publish_model("org/m", 1);
  f.publish_model("a/b/c", 1);
  const auto check = [&](const std::string& version, std::size_t count) {
    for (const std::string file : {"/model.safetensors", "/1_Pooling/config.json"}) {
      const Ino ino = ino_at(*f.vfs, "models/" + version + file);
      const auto places = must(f.vfs->places(ino));
      CHECK(places.size() == count);
      for (const Place& place : places) CHECK(must(f.vfs->lookup(place.dir, place.name)).ino == ino);
    }
  };
  check("org/m/1", 2);
  check("org/m/2", 2);
  check("org/m/3", 1);
  check("a/b/c/1", 1);
}

}  // namespace weft::testing
