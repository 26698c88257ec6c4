// hub/: the Hugging Face hub's cache layout.
#include <doctest/doctest.h>

#include <string>

#include "made_onnx.h"
#include "unit/vfs/vfs_fixture.h"
#include "vfs/numbers.h"

namespace weft::testing {
namespace {

struct HubFixture : VfsFixture {
  // Returns the first 40 hex digits of the digest of a version's manifest.
  std::string hash(std::string_view spec) const { return to_hex(must(resolve(spec)).manifest).substr(0, 40); }
  std::string ref(const std::string& name) { return read_path(*vfs, "hub/models--org--m/refs/" + name); }
  std::string target(const std::string& link) { return must(vfs->readlink(ino_at(*vfs, link))); }
  // Returns the name of the view's snapshot.
  std::string view_of(std::string_view spec) const {
    const std::string digits = hash(spec);
    return {digits.rbegin(), digits.rend()};
  }
  // Publishes a version whose weights are ONNX: safetensors/ has model.safetensors in place of model.onnx.
  void publish_onnx(const std::string& name, char first) {
    const std::string source = dir / (name + "-onnx-" + first);
    write_file(source + "/model.onnx", onnx_file(std::string(16, first)));
    write_file(source + "/config.json", "{}");
    write_file(source + "/notes/README.md", "# Notes\n");
    ImportOptions options;
    options.paths = {source};
    options.name = name;
    must(import_paths(*store, options, no_progress()));
  }
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

TEST_CASE("a snapshot has links to the files of models/, and directories of its own") {
  HubFixture f;
  f.publish_model("org/m", 1);
  const std::string snapshot = kModel + "/snapshots/" + f.hash("org/m@1");
  CHECK(names_in(*f.vfs, snapshot) == names_in(*f.vfs, "models/org/m/1"));
  CHECK(f.target(snapshot + "/model.safetensors") == "../../../../models/org/m/1/model.safetensors");
  CHECK(f.target(snapshot + "/1_Pooling/config.json") == "../../../../../models/org/m/1/1_Pooling/config.json");
  for (const std::string file : {"/model.safetensors", "/1_Pooling/config.json", "/empty.txt"}) {
    const Attr link = must(walk(*f.vfs, snapshot + file));
    CHECK(link.type == FileType::link);
    CHECK(link.size == f.target(snapshot + file).size());
    CHECK(link.blocks == 0);
    CHECK(must(f.vfs->getattr(link.ino)).size == link.size);
    CHECK(must(walk(*f.vfs, "models/org/m/1" + file)).nlink == 1);
    CHECK(f.vfs->open(link.ino).error().code == Errc::invalid);
    CHECK(f.vfs->list(link.ino, 0).error().code == Errc::not_dir);
    CHECK(f.vfs->lookup(link.ino, "x").error().code == Errc::not_dir);
  }
  for (const DirEntry& entry : list_all(*f.vfs, ino_at(*f.vfs, snapshot)))
    CHECK(entry.attr.type == (entry.name == "1_Pooling" ? FileType::directory : FileType::link));
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
  REQUIRE(f.hash("org/m@1") == f.hash("org/m@3"));
  CHECK(names_in(*f.vfs, kModel + "/snapshots").size() == 2);
  CHECK(f.ref("1") == f.ref("3"));
  const std::string file = kModel + "/snapshots/" + f.hash("org/m@1") + "/model.safetensors";
  CHECK(f.target(file) == "../../../../models/org/m/1/model.safetensors");
  must(f.store->remove_version("org/m", 1));
  CHECK(f.target(file) == "../../../../models/org/m/3/model.safetensors");
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

TEST_CASE("a source commit is a revision, and a link to the snapshot of its newest version") {
  HubFixture f;
  const std::string commit(kCommitDigits, 'c');
  const auto import = [&](const std::string& content, const std::string& source_commit) {
    write_file(f.dir / "cache/config.json", content);
    ImportOptions options;
    options.paths = {f.dir / "cache"};
    options.name = "org/m";
    options.source.commit = source_commit;
    must(import_paths(*f.store, options, no_progress()));
  };
  import("1", commit);
  import("2", commit);
  import("3", f.hash("org/m@1"));  // no commit of a source hides a snapshot
  CHECK(f.ref(commit) == f.hash("org/m@2"));
  const std::string link = kModel + "/snapshots/" + commit;
  CHECK(f.target(link) == f.hash("org/m@2"));
  const Attr attr = must(walk(*f.vfs, link));
  CHECK(attr.type == FileType::link);
  CHECK(attr.size == kCommitDigits);
  CHECK(must(f.vfs->getattr(attr.ino)).size == kCommitDigits);
  CHECK_FALSE(f.vfs->open(attr.ino).ok());
  CHECK(names_in(*f.vfs, kModel + "/refs") == Names{"1", "2", "3", commit, "main"});
  CHECK(names_in(*f.vfs, kModel + "/snapshots").size() == 4);
  CHECK(must(walk(*f.vfs, kModel + "/snapshots/" + f.hash("org/m@1"))).type == FileType::directory);
  must(f.store->set_tag("org/m", commit, 3));
  CHECK(f.ref(commit) == f.hash("org/m@3"));
  must(f.store->set_tag("org/m", commit, std::nullopt));
  must(f.store->remove_version("org/m", 2));
  CHECK(f.ref(commit) == f.hash("org/m@1"));
  must(f.store->remove_version("org/m", 1));
  CHECK(walk(*f.vfs, link).error().code == Errc::not_found);
}

TEST_CASE("hub/ shows a renamed model by its new name, and its links lead there") {
  HubFixture f;
  f.publish_model("old", 1);
  const std::string hash = f.hash("old@1");
  CHECK(f.target("hub/models--old/snapshots/" + hash + "/model.safetensors") ==
        "../../../../models/old/1/model.safetensors");
  must(f.store->rename_model("old", "org/m"));
  CHECK(names_in(*f.vfs, "hub") == Names{"models--org--m"});
  const std::string link = kModel + "/snapshots/" + hash + "/model.safetensors";
  CHECK(f.target(link) == "../../../../models/org/m/1/model.safetensors");
  CHECK(must(walk(*f.vfs, link)).size == f.target(link).size());
}

TEST_CASE("a model that needs the view has the revision safetensors, with links into safetensors/") {
  HubFixture f;
  f.publish_onnx("org/m", 'a');
  REQUIRE(names_in(*f.vfs, "safetensors/org/m/1") == Names{"config.json", "model.safetensors", "notes"});
  CHECK(names_in(*f.vfs, kModel + "/refs") == Names{"1", "main", "safetensors"});
  CHECK(f.ref("main") == f.hash("org/m@1"));
  CHECK(f.ref("safetensors") == f.view_of("org/m@1"));
  CHECK(must(f.vfs->open(ino_at(*f.vfs, kModel + "/refs/safetensors")))->mode() == ReadMode::changing);
  CHECK(names_in(*f.vfs, kModel + "/snapshots").size() == 2);
  CHECK(names_in(*f.vfs, kModel + "/snapshots/" + f.hash("org/m@1")) == Names{"config.json", "model.onnx", "notes"});
  const std::string snapshot = kModel + "/snapshots/" + f.ref("safetensors");
  CHECK(names_in(*f.vfs, snapshot) == names_in(*f.vfs, "safetensors/org/m/1"));
  CHECK(f.target(snapshot + "/model.safetensors") == "../../../../safetensors/org/m/1/model.safetensors");
  CHECK(f.target(snapshot + "/notes/README.md") == "../../../../../safetensors/org/m/1/notes/README.md");
  for (const std::string file : {"/model.safetensors", "/config.json", "/notes/README.md"}) {
    const Attr link = must(walk(*f.vfs, snapshot + file));
    CHECK(link.type == FileType::link);
    CHECK(link.size == f.target(snapshot + file).size());
    CHECK(must(f.vfs->getattr(link.ino)).size == link.size);
    CHECK(f.vfs->open(link.ino).error().code == Errc::invalid);
  }
  const Ino dir = ino_at(*f.vfs, snapshot + "/notes");
  CHECK(must(f.vfs->getattr(dir)).type == FileType::directory);
  CHECK(dir != ino_at(*f.vfs, kModel + "/snapshots/" + f.hash("org/m@1") + "/notes"));
  CHECK(must(f.vfs->parent(dir)) == ino_at(*f.vfs, snapshot));
  CHECK(must(f.vfs->parent(ino_at(*f.vfs, snapshot))) == ino_at(*f.vfs, kModel + "/snapshots"));
  CHECK(walk(*f.vfs, snapshot + "/model.onnx").error().code == Errc::not_found);
}

TEST_CASE("the revision safetensors is that of main, and a tag of this name hides it") {
  HubFixture f;
  f.publish_onnx("org/m", 'a');
  f.publish_onnx("org/m", 'b');
  CHECK(f.ref("safetensors") == f.view_of("org/m@2"));
  must(f.store->set_tag("org/m", "main", 1));
  CHECK(f.ref("safetensors") == f.view_of("org/m@1"));
  must(f.store->set_tag("org/m", "safetensors", 2));
  CHECK(f.ref("safetensors") == f.hash("org/m@2"));
  CHECK(names_in(*f.vfs, kModel + "/refs") == Names{"1", "2", "main", "safetensors"});
  CHECK(names_in(*f.vfs, kModel + "/snapshots").size() == 2);
  must(f.store->set_tag("org/m", "safetensors", std::nullopt));
  const Ino ref = ino_at(*f.vfs, kModel + "/refs/safetensors");
  f.publish_model("org/m", 1);
  must(f.store->set_tag("org/m", "main", std::nullopt));
  CHECK(walk(*f.vfs, kModel + "/refs/safetensors").error().code == Errc::not_found);
  CHECK(f.vfs->open(ref).error().code == Errc::not_found);
  CHECK(names_in(*f.vfs, kModel + "/refs") == Names{"1", "2", "3", "main"});
  CHECK(names_in(*f.vfs, kModel + "/snapshots").size() == 3);
  // A program that has begun to load the view finds the rest of it.
  CHECK(walk(*f.vfs, kModel + "/snapshots/" + f.view_of("org/m@2") + "/model.safetensors").ok());
  CHECK(walk(*f.vfs, kModel + "/snapshots/" + f.view_of("org/m@3")).error().code == Errc::not_found);
}

TEST_CASE("a published file has one link and one place, in models/ and in safetensors/") {
  HubFixture f;
  f.publish_model("org/m", 1);
  f.publish_model("org/m", 1);
  f.publish_model("a/b/c", 1);
  for (const std::string version : {"models/org/m/1", "models/a/b/c/1", "safetensors/org/m/1"})
    for (const std::string file : {"/model.safetensors", "/1_Pooling/config.json"}) {
      const Attr attr = must(walk(*f.vfs, version + file));
      CHECK(attr.nlink == 1);
      const Place place = must(f.vfs->place(attr.ino));
      CHECK(must(f.vfs->lookup(place.dir, place.name)).ino == attr.ino);
    }
}

TEST_CASE("numbers of links that hub/ never gave are refused") {
  HubFixture f;
  f.publish_model("org/m", 1);
  for (const char* path :
       {"models/org/m/1/1_Pooling", "layers/org/m/1/layer.json", "tensors/org/m/1", "models/org/m"}) {
    CAPTURE(path);
    const Ino link = ino_of(InoKind::hub_link, payload_of(ino_at(*f.vfs, path)));
    CHECK_FALSE(f.vfs->getattr(link).ok());
  }
  const Ino layer = payload_of(ino_at(*f.vfs, "layers/org/m/1/layer.json"));
  CHECK_FALSE(f.vfs->readlink(ino_of(InoKind::hub_link, layer)).ok());
  const Ino file = payload_of(ino_at(*f.vfs, "models/org/m/1/model.safetensors"));
  CHECK_FALSE(f.vfs->getattr(ino_of(InoKind::hub_dir, file)).ok());
  // The version does not need the view.
  CHECK_FALSE(f.vfs->getattr(ino_of(InoKind::hub_view_link, file)).ok());
  CHECK_FALSE(f.vfs->getattr(ino_of(InoKind::hub_view_ref, payload_of(ino_at(*f.vfs, "models/org/m")))).ok());
  CHECK_FALSE(f.vfs->list(ino_of(InoKind::hub_view_snapshot, must(f.resolve("org/m@1")).id), 0).ok());
}

TEST_CASE("numbers of the view that hub/ never gave are refused") {
  HubFixture f;
  f.publish_onnx("org/m", 'a');
  const auto refused = [&](InoKind kind, const char* path) {
    CAPTURE(path);
    CHECK_FALSE(f.vfs->getattr(ino_of(kind, payload_of(ino_at(*f.vfs, path)))).ok());
  };
  for (const char* path : {"models/org/m/1/model.onnx", "models/org/m/1/notes", "layers/org/m/1/layer.json",
                           "safetensors/org/m/1", "safetensors/org/m/1/notes"})
    refused(InoKind::hub_view_link, path);
  for (const char* path : {"models/org/m/1/notes", "safetensors/org/m/1", "safetensors/org/m/1/config.json"})
    refused(InoKind::hub_view_dir, path);
  refused(InoKind::hub_link, "safetensors/org/m/1/model.safetensors");
  refused(InoKind::hub_dir, "safetensors/org/m/1/notes");
}

}  // namespace weft::testing
