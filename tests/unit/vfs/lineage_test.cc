#include "vfs/numbers.h"

#include <doctest/doctest.h>

#include "base/text.h"
#include "fakes/node_fixture.h"
#include "weft/gc.h"
#include "weft/vfs.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct KinFixture : Fixture {
  KinFixture() { restart(); }
  void restart() { vfs = Vfs::make(*store, VfsOptions{}); }

  void publish_child(const std::string& name, const std::vector<std::string>& parents) {
    write_model(dir / "source", ++seed);
    ImportOptions options;
    options.paths = {dir / "source"};
    options.name = name;
    options.parents = parents;
    REQUIRE(import_paths(*store, options, no_progress()).ok());
  }
  Attr find(std::string_view path) {
    Attr attr = vfs->getattr(kRootIno).value();
    for (const std::string_view name : split(path, '/')) {
      auto next = vfs->lookup(attr.ino, name);
      if (!next.ok()) FAIL(next.error().message);
      attr = *next;
    }
    return attr;
  }
  std::string read(Ino ino) {
    const auto file = vfs->open(ino);
    if (!file.ok()) FAIL(file.error().message);
    std::vector<std::byte> bytes((*file)->size());
    REQUIRE((*file)->read(0, bytes).ok());
    CHECK(vfs->getattr(ino).value().size == bytes.size());
    return std::string(as_text(bytes));
  }

  std::uint64_t seed = 0;
  std::unique_ptr<Vfs> vfs;
};

}  // namespace

TEST_CASE(
    "what a lineage file's number reads as never changes, whatever is published and removed, also after a restart") {
  KinFixture f;
  f.publish_child("base", {});
  f.publish_child("mid", {"base"});
  const std::vector<std::string> names = {"ancestors", "descendants", "log", "graph.svg", "graph.dot", "owners.tsv"};
  std::map<Ino, std::string> seen;
  auto look = [&] {
    for (const char* version : {"base/1", "mid/1"})
      for (const std::string& name : names) {
        const Ino ino = f.find("models/" + std::string(version) + "/lineage/" + name).ino;
        CHECK(is_kin_file(ino));
        auto [known, fresh] = seen.emplace(ino, f.read(ino));
        CHECK(known->second == f.read(ino));
      }
  };
  look();
  CHECK(seen.size() == 12);
  f.publish_child("kid", {"mid", "base"});
  look();
  CHECK(seen.size() == 12 + 6);  // descendants and graphs of both
  f.publish_child("stranger", {});
  look();
  CHECK(seen.size() == 18);
  REQUIRE(f.store->remove_version("kid", 1).ok());
  look();
  CHECK(seen.size() == 18 + 6);
  REQUIRE(f.store->gc({}, no_progress()).ok());
  f.restart();
  for (const auto& [ino, text] : seen) CHECK(f.read(ino) == text);
}

TEST_CASE("diff/ has the live parents alone") {
  KinFixture f;
  f.publish_child("org/base", {});
  f.publish_child("other", {});
  f.publish_child("kid", {"org/base", "other"});
  const Attr dir = f.find("models/kid/1/lineage/diff");
  CHECK(dir.type == FileType::directory);
  CHECK(f.vfs->parent(dir.ino).value() == f.find("models/kid/1/lineage").ino);
  auto names = [&] {
    std::string out;
    const auto entries = f.vfs->list(dir.ino).value();
    for (const DirEntry& entry : entries) out += entry.name + " ";
    return out;
  };
  CHECK(names() == "org%2Fbase@1 other@1 ");
  const Attr file = f.find("models/kid/1/lineage/diff/org%2Fbase@1");
  const std::string text = f.read(file.ino);
  CHECK(text.starts_with("org/base@1 → kid@1\n"));
  CHECK(f.vfs->open(dir.ino).error().code == Errc::is_dir);
  CHECK(f.vfs->list(file.ino).error().code == Errc::not_dir);
  CHECK(f.vfs->lookup(file.ino, "x").error().code == Errc::not_dir);
  CHECK(f.vfs->lookup(dir.ino, "org/base@1").error().code == Errc::not_found);
  CHECK(f.vfs->readlink(file.ino).error().code == Errc::invalid);
  REQUIRE(f.store->remove_version("org/base", 1).ok());
  CHECK(names() == "other@1 ");
  CHECK(f.vfs->lookup(dir.ino, "org%2Fbase@1").error().code == Errc::not_found);
}

TEST_CASE("numbers that were never given are refused") {
  KinFixture f;
  f.publish_child("m", {});
  for (Ino low : {Ino{0}, Ino{1}, Ino{77} << 30U, Ino{7} << 57U, Ino{1} << 60U, (Ino{1} << 60U) | (Ino{1} << 30U) | 9U,
                  (Ino{1} << 61U) - 1})
    CHECK_FALSE(f.vfs->open(kKinFileBit | low).ok());
}
