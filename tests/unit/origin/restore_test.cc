// Restores a store from an origin, also from a damaged one.
#include <doctest/doctest.h>

#include <filesystem>

#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "diskformat/record.h"
#include "diskformat/toc.h"
#include "fakes/node_fixture.h"
#include "origin/dir.h"
#include "origin/stage.h"
#include "os/sys.h"
#include "store_paths.h"
#include "weft/cluster/origin.h"
#include "weft/store/fsck.h"

namespace weft::testing {
namespace {

constexpr std::string_view kCluster = "00000000-0000-4000-8000-00000000000a";

// An origin as the nodes of a cluster leave it: models a (versions 1 and 3; 2 is removed) and org/b (1), with tags.
struct Left {
  Fixture node;
  TempDir dir;
  OriginDir origin = must(OriginDir::open(dir.path(), "cluster"));
  TempDir place;
  std::string target = place / "deep/store";

  Left() {
    version("a", 1, {});
    version("a", 2, {"a@1"});
    version("a", 3, {"a@2"});
    version("org/b", 4, {"a@3"});
    say(MirroredTag{"a", "best", 1, 1000, 5});
    say(MirroredTag{"a", "best", 3, 2000, 7});
    say(MirroredTag{"a", "gone", 1, 1000, 6});
    say(MirroredTag{"a", "gone", 0, 1001, 8});
    say(MirroredTag{"a", "old", 2, 1500, 9});
    say(MirroredRemoval{"a", 2, 5000, "lost: its machine stopped"});
  }
  void version(const std::string& name, std::uint64_t seed, std::vector<std::string> parents) {
    const VersionRow row = node.publish_child(name, seed, std::move(parents));
    SearchedFor searched_for;
    must(stage_version(RevocableStore(*node.store), origin, row, no_progress(), searched_for));
  }
  void say(const VersionRow& row) const { must(origin.put_event(row, kCluster)); }
  // Gives the event the identity of the node's version of this name.
  template <class Event>
  void say(Event event) const {
    const auto snapshot = must(node.store->snapshot());
    const auto row = snapshot->version(must(snapshot->model(event.model)).id, event.number);
    event.uid = row.ok() ? row->uid : Uuid{0, event.number};
    must(origin.put_event(event, kCluster));
  }

  RestoreReport restore(bool accept_loss = false) const {
    return must(restore_store(dir.path(), target, {accept_loss, {}}, no_progress()));
  }
  Result<std::unique_ptr<Store>> restored() const {
    OpenOptions options;
    options.decode = content_decoder();
    return Store::open(target, options);
  }
  void check_sound() const {
    const auto report = must(must(restored())->fsck({}, content_decoder(), no_progress()));
    CHECK_MESSAGE(report.clean(), (report.clean() ? "" : report.problems[0]));
  }
  PackId pack_of_first() const {
    const auto snapshot = must(node.store->snapshot());
    return must(origin.places(must(snapshot->version(1)).manifest)).blobs[0].second.pack;
  }
  std::string first_pack() const { return pack_path(target, pack_of_first()); }  // of the restored store
  PackToc toc_of_newest() const {                                                // of the pack that only org/b@1 uses
    const auto snapshot = must(node.store->snapshot());
    const VersionRow row = must(snapshot->version(must(snapshot->model("org/b")).id, 1));
    for (const auto& [id, where] : must(origin.places(row.manifest)).blobs) {
      PackToc toc = must(origin.toc(where.pack));
      if (must(snapshot->some_holders(id, 1000)).size() == 1) return toc;
    }
    REQUIRE(false);
    return {};
  }
  void add_pack(const PackToc& toc, const std::string& bytes) const {
    write_file(pack_path(dir.path(), toc.pack), bytes);
    REQUIRE(write_toc(toc_path(dir.path(), toc.pack), toc).ok());
  }
  std::string only(const std::string& folder, const std::string& ending) const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(dir / folder))
      if (entry.path().string().ends_with(ending)) found = entry.path().string();
    return found;
  }
};

VersionRow row_of(Snapshot& snapshot, std::string_view model, std::uint64_t number) {
  return must(snapshot.version(must(snapshot.model(model)).id, number));
}

void flip(const std::string& path, std::size_t at) {
  std::string bytes = read_text(path);
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
  write_file(path, bytes);
}

}  // namespace

TEST_CASE("an origin alone gives versions, tags, parents and texts back, and what was removed stays so") {
  const Left left;
  const RestoreReport report = left.restore();
  CHECK(report.problems.empty());
  CHECK(report.versions == 3);
  CHECK(report.removed == 1);
  CHECK(report.models == 2);
  CHECK(report.tags == 1);
  const auto store = must(left.restored());
  CHECK(!store->cluster());
  const auto now = must(store->snapshot());
  const auto before = must(left.node.store->snapshot());
  for (const auto& [model, number] :
       std::vector<std::pair<std::string, std::uint64_t>>{{"a", 1}, {"a", 2}, {"a", 3}, {"org/b", 1}}) {
    const VersionRow was = row_of(*before, model, number);
    const VersionRow is = row_of(*now, model, number);
    CHECK(is.manifest == was.manifest);
    CHECK(is.time_ns == was.time_ns);
    CHECK(is.message == was.message);
    CHECK(is.metrics == was.metrics);
    CHECK(is.logical_bytes == was.logical_bytes);
    REQUIRE(is.parents.size() == was.parents.size());
    for (std::size_t i = 0; i < is.parents.size(); ++i) CHECK(is.parents[i].number == was.parents[i].number);
    CHECK(is.removed == (model == "a" && number == 2));
  }
  CHECK(row_of(*now, "a", 2).removed_ns == 5000);
  CHECK(row_of(*now, "a", 2).lost == "lost: its machine stopped");
  CHECK(row_of(*now, "a", 3).lost.empty());
  const ModelRow a = must(now->model("a"));
  CHECK(a.latest == 3);
  CHECK(a.next_number == 4);
  const auto tags = must(now->tags(a.id)).rows;
  REQUIRE(tags.size() == 1);
  CHECK(tags[0].name == "best");
  CHECK(tags[0].number == 3);
  CHECK(tags[0].time_ns == 2000);
  left.check_sound();
  CHECK(restore_store(left.dir.path(), left.target, {}, no_progress()).error().code == Errc::exists);
}

TEST_CASE("a restored version has its latest message and metrics, and a note of an unknown version is named") {
  const Left left;
  left.say(MirroredDescription{"a", 3, "noted again", {{"loss", "0.1"}}, 4000});
  left.say(MirroredDescription{"a", 3, "noted", {{"loss", "0.2"}}, 3000});
  CHECK(left.restore().problems.empty());
  const auto store = must(left.restored());
  const VersionRow row = row_of(*must(store->snapshot()), "a", 3);
  CHECK(row.message == "noted again");
  CHECK(row.metrics == Metrics{{"loss", "0.1"}});
  CHECK(row.described_ns == 4000);
  left.check_sound();
  const Left other;
  other.say(MirroredDescription{"a", 9, "noted", {}, 3000});
  const RestoreReport report = other.restore();
  CHECK(report.refused);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].starts_with("a@9: "));
}

TEST_CASE("the last of removals and undeletes counts, whatever the order of the records") {
  const Left left;
  left.say(MirroredRemoval{"a", 1, 7000});
  left.say(MirroredUndelete{"a", 1, 8000});
  left.say(MirroredRemoval{"a", 3, 9000});
  left.say(MirroredUndelete{"a", 3, 6500});
  left.say(MirroredRemoval{"a", 3, 6000});
  CHECK(left.restore().removed == 2);
  const auto now = must(must(left.restored())->snapshot());
  CHECK_FALSE(row_of(*now, "a", 1).removed);
  CHECK(row_of(*now, "a", 1).undeleted_ns == 8000);
  CHECK(row_of(*now, "a", 3).removed_ns == 9000);
  left.check_sound();
  const Left other;
  other.say(MirroredUndelete{"a", 9, 3000});
  const RestoreReport report = other.restore();
  CHECK(report.refused);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].starts_with("a@9: it was brought back"));
}

TEST_CASE("two versions of one number are both restored, and each tag leads to its version") {
  const Left left;
  VersionRow second = row_of(*must(left.node.store->snapshot()), "org/b", 1);
  second.model_name = "a";
  second.number = 3;
  second.time_ns = row_of(*must(left.node.store->snapshot()), "a", 3).time_ns + 1;
  second.uid = {7, 7};
  left.say(second);
  must(left.origin.put_event(MirroredTag{"a", "second", 3, 3000, 10, {}, second.uid}, kCluster));
  SUBCASE("the later one gets the next number") {
    const RestoreReport report = left.restore();
    CHECK(report.problems.empty());
    REQUIRE(report.mended.size() == 1);
    CHECK(report.mended[0].starts_with("a@3: two versions have this name"));
  }
  SUBCASE("unless the registry has given it one") {
    must(left.origin.put_event(MirroredRenumber{"a", 3, 4, 5000, second.uid}, kCluster));
    CHECK(left.restore().mended.empty());
  }
  const auto store = must(left.restored());
  const auto now = must(store->snapshot());
  CHECK(row_of(*now, "a", 4).uid == second.uid);
  CHECK(row_of(*now, "a", 4).manifest == second.manifest);
  CHECK(row_of(*now, "a", 3).uid != second.uid);
  const ModelRow a = must(now->model("a"));
  CHECK(must(now->tag(a.id, "second")).number == 4);
  CHECK(must(now->tag(a.id, "best")).number == 3);
  left.check_sound();
}

TEST_CASE("damaged bytes are named and refused; with leave to lose them what needs them is a tombstone") {
  const Left left;
  const auto snapshot = must(left.node.store->snapshot());
  const auto places = must(left.origin.places(row_of(*snapshot, "org/b", 1).manifest));
  const auto before = must(left.origin.places(row_of(*snapshot, "a", 3).manifest));
  for (const auto& [id, place] : places.blobs)  // in the one tensor that only org/b has
    if (id.length == 16384 && !before.find(id)) flip(pack_path(left.dir.path(), place.pack), place.offset + 100);
  const RestoreReport refused = left.restore();
  CHECK(refused.refused);
  REQUIRE(refused.problems.size() == 2);
  CHECK(refused.problems[0].find("are damaged") != std::string::npos);
  CHECK(refused.problems[1].starts_with("org/b@1: 1 of its extents"));
  CHECK(left.restored().error().code == Errc::not_found);
  const RestoreReport report = left.restore(true);
  CHECK(!report.refused);
  CHECK(report.problems == refused.problems);
  CHECK(report.versions == 2);
  CHECK(report.removed == 2);
  const auto store = must(left.restored());
  const auto now = must(store->snapshot());
  CHECK(row_of(*now, "org/b", 1).removed);
  CHECK(row_of(*now, "org/b", 1).message == "the 4");
  left.check_sound();
}

TEST_CASE("a restore names each missing file before it creates anything") {
  const Left left;
  const auto snapshot = must(left.node.store->snapshot());
  std::string expected;
  SUBCASE("a manifest") {
    std::filesystem::remove(left.dir / ("manifests/" + to_hex(row_of(*snapshot, "a", 3).manifest)));
    expected = "a@3: ";
  }
  SUBCASE("a version's record") {
    left.say(MirroredRemoval{"a", 9, 1});
    expected = "a@9: it was removed";
  }
  SUBCASE("a tagged version's record") {
    left.say(MirroredTag{"a", "lost", 8, 1, 1});
    expected = "a@8: tag lost";
  }
  SUBCASE("a whole record") {
    flip(left.only("journal", ".tag"), 20);
    expected = left.dir.path();
  }
  SUBCASE("a record of its own name") {
    std::filesystem::copy_file(left.only("journal", ".rm"), left.dir / "journal/0000000000000001-0123456789abcdef.rm");
    expected = left.dir / "journal/0000000000000001-0123456789abcdef.rm: expected a record named";
  }
  SUBCASE("a kind that an origin has") {
    const auto record = seal_record(static_cast<RecordKind>(15), as_bytes("later"));
    write_file(left.dir / "journal/0000000000000001-later", as_text(record));
    expected = left.dir /
               "journal/0000000000000001-later: expected a version, a tag, a removal, an undelete, a note or a new "
               "number";
  }
  const RestoreReport refused = left.restore();
  CHECK(refused.refused);
  REQUIRE(refused.problems.size() == 1);
  CHECK_MESSAGE(refused.problems[0].starts_with(expected), refused.problems[0]);
  CHECK(!std::filesystem::exists(left.target));
  CHECK(!left.restore(true).refused);
  left.check_sound();
}

TEST_CASE("a restore replaces a damaged blob from another pack of the origin") {
  const Left left;
  const PackToc toc = must(left.origin.toc(left.pack_of_first()));
  const std::string pack = pack_path(left.dir.path(), toc.pack);
  PackToc twin = toc;  // the pack of another node that published the same files
  twin.pack = 0x77;
  left.add_pack(twin, read_text(pack));
  std::string expected = "are damaged; found whole all the same";
  SUBCASE("one blob") {
    flip(pack, toc.entries[0].offset + 10);
  }
  SUBCASE("all blobs") {
    for (const PackEntry& entry : toc.entries) flip(pack, entry.offset + 10);
  }
  SUBCASE("each has another one whole") {
    REQUIRE(toc.entries.size() > 1);
    flip(pack, toc.entries[0].offset + 10);
    flip(pack_path(left.dir.path(), twin.pack), toc.entries[1].offset + 10);
  }
  SUBCASE("no bytes") {
    std::filesystem::remove(pack);
    expected = "No such file";
  }
  SUBCASE("fewer bytes") {
    std::filesystem::resize_file(pack, 10);
  }
  const RestoreReport report = left.restore();
  CHECK(report.problems.empty());
  REQUIRE(report.mended.size() == 1);
  CHECK_MESSAGE(report.mended[0].find(expected) != std::string::npos, report.mended[0]);
  CHECK(report.versions == 3);
  left.check_sound();
}

TEST_CASE("a blob that is damaged in all packs of an origin is lost") {
  const Left left;
  PackToc twin = left.toc_of_newest();
  std::string bytes = read_text(pack_path(left.dir.path(), twin.pack));
  const PackId first = twin.pack;
  bytes.at(twin.entries[0].offset) = static_cast<char>(~bytes.at(twin.entries[0].offset));
  for (twin.pack = 0x70; twin.pack < 0x73; ++twin.pack) left.add_pack(twin, bytes);
  write_file(pack_path(left.dir.path(), first), bytes);
  const RestoreReport refused = left.restore();
  CHECK(refused.refused);
  CHECK(refused.problems.back().starts_with("org/b@1: 1 of its extents"));
  CHECK(left.restore(true).versions == 2);
  left.check_sound();
}

TEST_CASE("a restore without a table of contents or places scans the packs") {
  for (const bool places : {false, true})
    for (const bool rubbish : {false, true}) {
      const Left left;
      const auto snapshot = must(left.node.store->snapshot());
      const std::string damaged = places ? left.dir / ("places/" + to_hex(row_of(*snapshot, "org/b", 1).manifest))
                                         : toc_path(left.dir.path(), left.toc_of_newest().pack);
      std::filesystem::remove(damaged);
      if (rubbish) write_file(damaged, "rubbish");
      const RestoreReport report = left.restore();
      CHECK(report.problems.empty());
      REQUIRE(report.mended.size() == 1);
      CHECK(report.mended[0].starts_with(damaged));
      CHECK(report.versions == 3);
      left.check_sound();
    }
}

TEST_CASE("a removal that cannot be read removes all the same: no version comes back to life") {
  const Left left;
  const std::string removal = left.only("journal", ".rm");
  std::vector<std::string> problems, mended;
  SUBCASE("a flipped bit") {
    flip(removal, 20);
    mended = {removal};
  }
  SUBCASE("no bytes") {
    write_file(removal, "");
    mended = {removal};
  }
  SUBCASE("another kind of record") {
    write_file(removal, as_text(seal_record(static_cast<RecordKind>(15), as_bytes("later"))));
    mended = {removal};
  }
  SUBCASE("under another name") {
    std::filesystem::rename(removal, left.dir / "journal/0000000000000001-0123456789abcdef.rm");
    problems = {left.dir / "journal/0000000000000001-0123456789abcdef.rm: expected a record named"};
  }
  if (!problems.empty()) {
    const RestoreReport refused = left.restore();
    CHECK(refused.refused);
    REQUIRE(refused.problems.size() == problems.size());
    CHECK_MESSAGE(refused.problems[0].starts_with(problems[0]), refused.problems[0]);
  }
  const RestoreReport report = left.restore(!problems.empty());
  REQUIRE(report.mended.size() == mended.size());
  if (!mended.empty()) {
    CHECK(report.mended[0].starts_with(mended[0]));
    CHECK(report.mended[0].ends_with("its name tells that it removed a@2"));
  }
  CHECK(report.removed == 1);
  const auto now = must(must(left.restored())->snapshot());
  CHECK(row_of(*now, "a", 2).removed);
  CHECK(row_of(*now, "a", 2).removed_ns == 5000);
  left.check_sound();
}

TEST_CASE("a restore names removals of unknown versions and records with invalid names") {
  const Left left;
  std::string name, expected;
  SUBCASE("a removal") {
    name = "0000000000000001-0123456789abcdef.rm";
    expected = "it removed no version that the origin has a record of";
  }
  SUBCASE("a removal's ending alone") {
    name = "x.rm";
    expected = "it removed no version that the origin has a record of";
  }
  SUBCASE("a tag") {
    name = "0000000000000001-0123456789abcdef.tag";
    expected = "a change of a tag is lost: the tag may point to an earlier version";
  }
  SUBCASE("no name at all") {
    name = "17";
    expected = "its content is lost; if it was a removal, the version is not removed";
  }
  write_file(left.dir / ("journal/" + name), "rubbish");
  const RestoreReport refused = left.restore();
  REQUIRE(refused.problems.size() == 1);
  CHECK_MESSAGE(refused.problems[0].ends_with(expected), refused.problems[0]);
  CHECK(left.restore(true).versions == 3);
}

TEST_CASE("a number known only from a removal is not used again") {
  const Left left;
  left.say(MirroredRemoval{"a", 9, 1});
  CHECK(!left.restore(true).refused);
  const auto store = must(left.restored());
  CHECK(must(must(store->snapshot())->model("a")).next_number == 10);
}

TEST_CASE("an interrupted restore leaves no store, and continues at the next call") {
  const Left left;
  HookProgress progress;
  progress.on_phase = [&](std::string_view phase) { progress.cancel = phase == "copying manifests"; };
  const auto cut = restore_store(left.dir.path(), left.target, {}, progress);
  CHECK(cut.error().code == Errc::cancelled);
  CHECK(left.restored().error().code == Errc::not_found);
  write_file(left.target + "/tmp/half", "of a pack that was being copied");
  const std::string other_pack = pack_path(left.target, 0x123);  // of a version that was removed since
  const Left other;
  CHECK(restore_store(other.dir.path(), left.target, {}, no_progress()).error().code == Errc::exists);
  write_file(other_pack, "bytes");
  const auto inode = must(stat_file(left.first_pack())).st_ino;
  CHECK(left.restore().problems.empty());
  CHECK(must(stat_file(left.first_pack())).st_ino == inode);  // the pack was not copied again
  CHECK(!std::filesystem::exists(other_pack));
  CHECK(std::filesystem::is_empty(left.target + "/tmp"));
  left.check_sound();
}

TEST_CASE("a pack that an earlier try has copied in part is copied whole") {
  const Left left;
  HookProgress progress;
  progress.on_phase = [&](std::string_view phase) { progress.cancel = phase == "copying manifests"; };
  CHECK(!restore_store(left.dir.path(), left.target, {}, progress).ok());
  for (const auto& entry : std::filesystem::directory_iterator(left.target + "/packs"))
    if (entry.path().extension() == ".toc") std::filesystem::remove(entry.path());
  CHECK(left.restore().problems.empty());
  left.check_sound();
}

TEST_CASE("a restore without an origin, or into a store, creates nothing") {
  const TempDir temp;
  CHECK(restore_store(temp / "none", temp / "store", {}, no_progress()).error().code == Errc::not_found);
  CHECK(restore_store(temp.path(), temp / "store", {}, no_progress()).error().code == Errc::not_found);
  CHECK(std::filesystem::is_empty(temp.path()));
  const Left left;
  write_file(left.target + "/file", "");
  CHECK(restore_store(left.dir.path(), left.target, {}, no_progress()).error().code == Errc::exists);
}

}  // namespace weft::testing
