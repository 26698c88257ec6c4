#include "weft/store/restore.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/sha256.h"
#include "cluster_support.h"
#include "store/checking/checking.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Names = std::vector<std::string>;

// A directory that restores from the origins "first" and "second" begin in.
struct Room {
  Result<StoreRestore> begin(std::string_view origin = "first") const { return StoreRestore::begin(path, origin, {}); }
  Names names(const std::string& folder = "") const { return must(list_directory(path + "/" + folder)); }

  TempDir dir;
  std::string path = dir / "deep/store";
};

PackToc toc_of(PackId pack, const std::vector<unsigned>& contents) {
  PackToc toc;
  toc.pack = pack;
  for (const unsigned content : contents) {
    toc.entries.push_back({content_id(content), toc.size, {sha256(content_bytes(content))}});
    toc.size += content_id(content).length;
  }
  return toc;
}

// Copies a pack with these contents, as from an origin.
PackToc copy_pack(const StoreRestore& restore, PackId pack, const std::vector<unsigned>& contents) {
  std::string bytes;
  for (const unsigned content : contents) bytes += as_text(content_bytes(content));
  const SafePath file = restore.pack_file();
  write_file(file.str(), bytes);
  must(restore.add_pack(file, toc_of(pack, contents)));
  return toc_of(pack, contents);
}

// Copies a version with its manifest and a pack of its own. Returns its record.
MirroredVersion copy_version(const StoreRestore& restore, std::string_view model, unsigned content) {
  MirroredVersion version = record(model, 1, {{content}});
  must(restore.add_manifest(version.version.manifest, manifest_of({{content}})));
  version.packs = {copy_pack(restore, 0x10 + content, {content}).pack};
  return version;
}

}  // namespace

TEST_CASE("a restored directory becomes a store when the restore ends, and not before") {
  const Room room;
  {
    const StoreRestore restore = must(room.begin());
    const std::vector<MirrorChange> changes{copy_version(restore, "m", 1), copy_version(restore, "n", 2)};
    CHECK(must(restore.take(changes, decode, no_progress())).empty());
    CHECK(Store::open(room.path, {}).error().code == Errc::not_found);
    must(restore.finish());
  }
  CHECK_FALSE(must(Store::open(room.path, {}))->cluster().has_value());
  const auto parts = must(StoreParts::open(safe(room.path), write_options()));
  for (const unsigned content : {1U, 2U}) CHECK(must(must(parts->blobs.read())->find(content_id(content))).has_value());
  CHECK(must(fsck(*parts, {}, decode, no_progress())).problems.empty());
  CHECK(room.names("tmp").empty());
  CHECK(room.begin().error().code == Errc::exists);
}

TEST_CASE("a restore continues with the copies of an earlier one from the same origin alone") {
  const Room room;
  PackToc toc;
  {
    const StoreRestore restore = must(room.begin());
    toc = copy_pack(restore, 0x11, {1, 2});
    write_file(restore.pack_file().str(), "half of a pack");
  }
  CHECK(room.begin("second").error().code == Errc::exists);
  const StoreRestore restore = must(room.begin());
  CHECK(must(restore.has_pack(toc)));
  CHECK(room.names("tmp") == Names{"restoring"});
  must(restore.keep_packs({toc.pack}));
  CHECK(room.names("packs").size() == 2);
  must(restore.keep_packs({}));
  CHECK(room.names("packs").empty());
}

TEST_CASE("a restore that was killed while it wrote its mark begins again") {
  const Room room;
  write_file(room.path + "/tmp/restoring", "fir");
  CHECK(room.begin("second").error().code == Errc::exists);
  CHECK(room.begin("first").ok());
}

TEST_CASE("a copied pack counts only if it is whole and lists all blobs, and is deleted otherwise") {
  const Room room;
  const StoreRestore restore = must(room.begin());
  PackToc toc = copy_pack(restore, 0x11, {1, 2});
  CHECK(must(restore.has_pack(toc)));
  CHECK(must(restore.has_pack(toc_of(0x11, {1}))));
  SUBCASE("a blob is missing") {
    toc = toc_of(0x11, {1, 2, 3});
  }
  SUBCASE("bytes are missing") {
    std::filesystem::resize_file(pack_path(room.path, toc.pack), 10);
  }
  SUBCASE("the table of contents is missing") {
    std::filesystem::remove(toc_path(room.path, toc.pack));
  }
  CHECK_FALSE(must(restore.has_pack(toc)));
  CHECK(room.names("packs").empty());
}

TEST_CASE("a directory with other files is refused and left as it was") {
  const Room room;
  write_file(room.path + "/file", "");
  CHECK(room.begin().error().code == Errc::exists);
  CHECK(room.names() == Names{"file"});
}

TEST_CASE("an impossible change is named, and a cancelled restore can be taken again") {
  const Room room;
  const StoreRestore restore = must(room.begin());
  const std::vector<MirrorChange> changes{copy_version(restore, "m", 1), copy_version(restore, "m/n", 2)};
  SilentProgress cancelled([] { return true; });
  CHECK(restore.take(changes, decode, cancelled).error().code == Errc::cancelled);
  const auto problems = must(restore.take(changes, decode, no_progress()));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].starts_with("m/n@1: "));
}
