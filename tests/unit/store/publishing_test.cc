#include <doctest/doctest.h>
#include <fcntl.h>

#include <vector>

#include "os/sys.h"
#include "parts_support.h"
#include "store/publishing/memory_versions.h"
#include "store/publishing/publisher.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Room = TestParts;

}  // namespace

TEST_CASE("a publisher tags, pins and removes what it has published") {
  Room room;
  must(publish(*room.parts, "m", {{1, 2}}));
  must(publish(*room.parts, "m", {{3}}));
  must(set_tag(*room.parts, "m", "best", 1));
  CHECK(set_tag(*room.parts, "m", "best", 9).error().code == Errc::not_found);
  must(pin(*room.parts, "m", 1, true));
  const VersionId id = room.version("m", 1).id;
  CHECK(room.has_note(kPinned, id));
  const std::vector<VersionName> names = {{"m", 1}, {"m", 2}};
  CHECK(remove_versions(*room.parts, names, Tagged::refused).error().code == Errc::exists);
  CHECK_FALSE(room.version("m", 1).removed);
  CHECK(must(remove_versions(*room.parts, names, Tagged::removed)) == 2);
  CHECK(room.version("m", 1).removed);
  CHECK_FALSE(room.has_note(kPinned, id));
  CHECK(remove_versions(*room.parts, names, Tagged::removed).error().code == Errc::not_found);
}

TEST_CASE("a batch of removals ends before a version that got a tag") {
  Room room;
  for (unsigned char i = 1; i <= 3; ++i) must(publish(*room.parts, "m", {{i}}));
  must(set_tag(*room.parts, "m", "best", 2));
  const std::vector<VersionName> names = {{"m", 1}, {"m", 2}, {"m", 3}};
  CHECK(must(remove_versions(*room.parts, names, Tagged::refused)) == 1);
  CHECK(room.version("m", 1).removed);
  CHECK_FALSE(room.version("m", 2).removed);
  CHECK_FALSE(room.version("m", 3).removed);
}

TEST_CASE("a publisher of a store in a cluster leaves names to the registry") {
  Room room(ClusterIdentity{"test", "node"});
  CHECK(set_tag(*room.parts, "m", "best", 1).error().code == Errc::read_only);
  CHECK(remove_versions(*room.parts, {}, Tagged::removed).error().code == Errc::read_only);
  CHECK(publish(*room.parts, "m", {{1}}).error().code == Errc::read_only);
}

TEST_CASE("an import without a publish leaves nothing") {
  Room room;
  CHECK(must(begin_import(*room.parts, Durability::local)) != nullptr);
  CHECK(must(list_directory(safe(room.made.path) / "packs")).empty());
}

TEST_CASE("a version on the disk is kept, and one that is lost says why") {
  Room room;
  StoreMemory memory(*room.parts);
  must(publish(*room.parts, "m", {{1}}));
  const VersionId id = room.version("m", 1).id;
  CHECK(must(memory.unsynced_bytes(id)) == 0);
  CHECK(must(memory.flush_version(id, [] { return Status{}; })) == MemoryState::kept);
  must(memory.keep_version("m", 1));
  must(memory.lose_version("m", 1, "lost: a test"));
  CHECK(room.version("m", 1).lost == "lost: a test");
  CHECK(must(memory.flush_version(id, [] { return Status{}; })) == MemoryState::gone);
}

TEST_CASE("a prepared publish that is given up takes its packs with it") {
  Room room(ClusterIdentity{"test", "node"});
  PublishRequest request;
  request.model = "m";
  request.content = make_content({{1}});
  request.manifest = manifest_of({{1}});
  const auto prepare = [&] {
    auto import = must(begin_import(*room.parts, Durability::local));
    TempDir dir;
    write_file(dir / "source", as_text(content_bytes(1)));
    const Fd fd = must(open_file(dir / "source", O_RDONLY));
    const Range all{0, content_id(1).length};
    must(import->add(fd.get(), "source", std::span(&all, 1), no_progress()));
    return must(import->prepare(request));
  };
  const auto packs = [&] { return must(list_directory(safe(room.made.path) / "packs")).size(); };
  auto prepared = prepare();
  CHECK(prepared->record().version.publisher == "node");
  CHECK(prepared->new_bytes() == content_id(1).length);
  CHECK(packs() == 2);
  CHECK(room.parts->reliances.packs().size() == 1);
  prepared.reset();
  CHECK(packs() == 0);
  prepared = prepare();
  prepared->keep();
  prepared.reset();
  CHECK(packs() == 2);
}
