#include "origin/collect.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "diskformat/pack_names.h"
#include "fakes/node_fixture.h"
#include "fakes/stop_after.h"
#include "fetch/verified_source.h"
#include "origin/deletions.h"
#include "origin/stage.h"
#include "os/sys.h"
#include "weft/deadline.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kNow = 2'000'000'000'000'000'000;  // ns
constexpr std::uint64_t kLong = kNow - 1;                  // a removal before the horizon

// A registry in memory, and one node that publishes and stages.
struct Collected final : CollectionOrder {
  Fixture node;
  TempDir dir;
  std::vector<VersionRow> rows;
  OriginCollection announced;
  std::optional<std::vector<VersionRow>> shown;  // instead of `rows`: an earlier state
  std::function<void()> before_announcement = [] {}, after_announcement = [] {}, at_latest = [] {};
  Status announcement;  // a fault

  Result<std::vector<VersionRow>> versions() override { return shown.value_or(rows); }
  Result<std::vector<std::byte>> manifest(const VersionRow& row) override {
    WEFT_TRY(const auto reader, node.store->open_manifest(row.manifest));
    return std::vector<std::byte>(reader->bytes().begin(), reader->bytes().end());
  }
  Result<bool> is_live(const VersionRow& row) override {
    const auto now = std::ranges::find(rows, row.uid, &VersionRow::uid);
    return now == rows.end() || !now->removed;
  }
  OriginCollection latest() override {
    at_latest();
    return announced;
  }
  Status announce(const OriginCollection& next) override {
    WEFT_CHECK(announcement);
    if (announced.sequence >= next.sequence) return Error{Errc::changed, "another one"};
    before_announcement();
    announced = next;
    after_announcement();
    return {};
  }

  OriginDir open() const {
    auto opened = OriginDir::open(dir.path(), "cluster");
    REQUIRE(opened.ok());
    return std::move(opened).value();
  }
  VersionRow publish(std::uint64_t seed, const std::string& name) {
    write_model(node.dir / name, seed);
    return publish_files(name);
  }
  // Publishes a model that shares no blob with those of write_model().
  VersionRow publish_unlike(const std::string& name, std::uint64_t seed = 2) {
    write_file(node.dir / name + "/model.safetensors",
               safetensors_file({{"other", "F32", {64, 64}, random_bytes(16384, 2000 + seed)},
                                 {"both", "F32", {64, 64}, random_bytes(16384, 2000)}}));
    return publish_files(name);
  }
  // Publishes and stages a model of these tensors, which are numbers.
  VersionRow stage_tensors(const std::string& name, const std::vector<unsigned>& tensors) {
    std::vector<NamedTensor> all;
    for (const unsigned one : tensors)
      all.push_back({"t" + std::to_string(one), "F32", {64, 64}, random_bytes(16384, 3000 + one)});
    write_file(node.dir / name + "/model.safetensors", safetensors_file(all));
    const VersionRow row = publish_files(name);
    stage(row);
    return row;
  }
  std::set<ContentId> blobs_of(const VersionRow& row) const {
    const auto manifest = node.store->open_manifest(row.manifest);
    const auto decoded = decode_manifest((*manifest)->bytes());
    std::set<ContentId> blobs;
    for (const File& file : decoded->files)
      for (const Extent& extent : file.extents) blobs.insert(extent.id);
    return blobs;
  }
  bool any_pack_has(const ContentId& id) const {
    for (const PackId pack : must(open().packs()))
      if (std::ranges::any_of(must(open().toc(pack)).entries, [&](const PackEntry& one) { return one.id == id; }))
        return true;
    return false;
  }
  VersionRow publish_files(const std::string& name) {
    rows.push_back(node.publish({node.dir / name}, name).outcome.version);
    return rows.back();
  }
  void remove(const VersionRow& row, std::uint64_t removed_ns = kLong) {
    for (VersionRow& one : rows)
      if (one.id == row.id) {
        one.removed = true;
        one.removed_ns = removed_ns;
      }
    const MirroredRemoval removal{row.model_name, row.number, removed_ns, {}, row.uid};
    REQUIRE(open().put_event(removal, {}).ok());
  }
  void stage(const VersionRow& row) {
    OriginDir origin = open();
    REQUIRE(origin.know_freed(announced.sequence).ok());
    SearchedFor searched_for;
    const Status staged = stage_version(RevocableStore(*node.store), origin, row, no_progress(), searched_for);
    REQUIRE_MESSAGE(staged.ok(), (staged.ok() ? "" : staged.error().message));
  }
  VersionRow publish_and_stage(std::uint64_t seed, const std::string& name) {
    const VersionRow row = publish(seed, name);
    stage(row);
    return row;
  }
  Result<OriginGcReport> collect(bool dry_run = false, std::vector<PurgedVersion> purged = {}) {
    return collect_origin(open(), *this, {kNow, std::move(purged), dry_run}, no_progress());
  }
  std::size_t files(const std::string& folder) const {
    const std::filesystem::directory_iterator all(dir.path() + "/" + folder);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  Result<OriginGcReport> collect_for(std::uint64_t reading_ns) {
    return collect_origin(open(), *this, {kNow, {}, false, false, reading_ns}, no_progress());
  }
  bool is_whole(const VersionRow& row) const { return is_whole(row, origin_source(dir.path())); }
  bool is_whole(const VersionRow& row, std::shared_ptr<BlobSource> source) const {
    VerifiedSource reader(std::move(source));
    const auto manifest = reader.manifest(row.manifest, deadline_in(10s));
    if (!manifest.ok()) return false;
    const auto decoded = decode_manifest(*manifest);
    for (const File& file : decoded->files)
      for (const Extent& extent : file.extents) {
        const ChunkRun all{extent.id, 0, (extent.id.length - 1) / kDigestChunk + 1};
        if (!reader.read(row.manifest, std::span(&all, 1), deadline_in(10s)).ok()) return false;
      }
    return true;
  }
};

}  // namespace

TEST_CASE("a collection frees what removed versions alone need, and nothing else") {
  Collected test;
  const VersionRow stays = test.publish_and_stage(1, "stays");
  const VersionRow goes = test.publish_and_stage(100, "goes");
  CHECK(test.collect()->packs_freed == 0);
  test.remove(goes);
  const auto would = test.collect(true);
  CHECK(would->packs_freed == 1);
  CHECK(test.is_whole(goes));
  const auto done = test.collect();
  REQUIRE(done.ok());
  CHECK(done->packs_freed == 1);
  CHECK(done->manifests_freed == 1);
  CHECK(done->versions == 1);
  CHECK(done->packs == 1);
  CHECK(done->bytes_freed == would->bytes_freed);
  CHECK(test.is_whole(stays));
  CHECK(test.files("packs") == 2);
  CHECK(test.files("manifests") == 1);
  CHECK(test.files("places") == 1);
  CHECK(test.files("journal") == 3);
  CHECK(test.announced.horizon_ns == kNow);
  CHECK(test.collect()->packs_freed == 0);
}

TEST_CASE("a version that was removed within the grace period keeps its content, a purged one does not") {
  Collected test;
  const VersionRow row = test.publish_and_stage(1, "model");
  test.remove(row, kNow + 1);
  CHECK(test.collect()->versions_in_grace == 1);
  CHECK(test.is_whole(row));
  CHECK(test.collect(false, {{{"model", 1}, {9, 9}}})->packs_freed == 0);  // another version had this name
  CHECK(test.collect(false, {{{"model", 1}, row.uid}})->packs_freed == 1);
}

TEST_CASE("a live version keeps its content, whatever other version has its identity") {
  Collected test;
  const VersionRow first = test.publish_and_stage(1, "first");
  test.publish(100, "second");
  test.rows.back().uid = first.uid;
  const VersionRow second = test.rows.back();
  test.stage(second);
  CHECK(test.collect()->packs_freed == 0);
  test.remove(first, kNow + 1);
  CHECK(test.collect(false, {{{"second", 1}, first.uid}})->packs_freed == 0);
  CHECK(test.is_whole(first));
  CHECK(test.is_whole(second));
}

TEST_CASE("a pack stays while any version needs a blob of it") {
  Collected test;
  const VersionRow base = test.publish_and_stage(1, "base");
  const VersionRow derived = test.publish_and_stage(2, "derived");
  test.remove(base);
  const auto done = test.collect();
  CHECK(done->packs_freed == 0);
  CHECK(done->manifests_freed == 1);
  CHECK(test.is_whole(derived));
}

TEST_CASE("a partly dead pack is rewritten, also under a reader that has it open") {
  Collected test;
  const VersionRow base = test.publish_and_stage(1, "base");
  const VersionRow derived = test.publish_and_stage(2, "derived");
  const std::uint64_t before = test.open().totals()->bytes;
  const auto reader = origin_source(test.dir.path());
  CHECK(test.is_whole(derived, reader));
  test.remove(base);
  CHECK(test.collect(true)->packs_rewritten == 1);
  const auto done = test.collect();
  REQUIRE(done.ok());
  CHECK(done->packs_rewritten == 1);
  CHECK(done->packs == 2);
  CHECK(done->dead_bytes == 0);
  CHECK(done->bytes_freed > 8192);  // the blocks that only the dead tensor of 16 KiB has
  CHECK(test.open().totals()->bytes == before - done->bytes_freed);
  CHECK(test.files("packs") == 4);
  CHECK(test.files("manifests") == 1);
  CHECK(test.files("places") == 1);
  CHECK(test.open().holds(derived.manifest));
  CHECK(test.is_whole(derived));
  CHECK(test.is_whole(derived, reader));
  const auto again = test.collect();
  CHECK(again->packs_rewritten == 0);
  CHECK(again->bytes_freed == 0);
  CHECK(test.open().freed().sequence == 1);
}

TEST_CASE("a version that waits for its stage-out keeps only the rewritten packs that have its blobs") {
  for (const bool shares : {false, true}) {
    Collected test;
    const VersionRow base = test.publish_and_stage(1, "base");
    const VersionRow derived = test.publish_and_stage(2, "derived");
    const VersionRow waits = shares ? test.publish(3, "waits") : test.publish_unlike("waits");
    test.remove(base);
    const auto done = test.collect();
    REQUIRE(done.ok());
    CHECK(done->packs_rewritten == 1);
    CHECK(done->packs_spared == (shares ? 1 : 0));
    CHECK((done->dead_bytes > 0) == shares);
    CHECK(test.files("packs") == (shares ? 6 : 4));
    CHECK(test.collect()->packs_spared == (shares ? 1 : 0));
    test.stage(waits);
    CHECK(test.collect()->packs_spared == 0);
    CHECK(test.files("packs") == 6);
    CHECK(test.is_whole(derived));
    CHECK(test.is_whole(waits));
  }
}

TEST_CASE("a rewritten pack stays as long as readers may use it") {
  Collected test;
  const VersionRow base = test.publish_and_stage(1, "base");
  const VersionRow derived = test.publish_and_stage(2, "derived");
  test.remove(base);
  for (const std::uint64_t rewritten : {1U, 0U}) {
    const auto done = test.collect_for(3'600'000'000'000);
    REQUIRE(done.ok());
    CHECK(done->packs_rewritten == rewritten);
    CHECK(done->packs_freed == 0);
    CHECK(test.files("packs") == 6);
    CHECK(test.files("places") == 2);
    CHECK(test.is_whole(derived));
  }
  CHECK(test.collect()->packs_freed == 1);
  CHECK(test.files("packs") == 4);
  CHECK(test.collect()->packs_freed == 0);
  CHECK(test.files("places") == 1);
  CHECK(test.is_whole(derived));
}

TEST_CASE("a rewrite that is stopped anywhere loses nothing, and the next collection continues it") {
  for (int steps = 0, ended = 0; ended == 0; ++steps) {
    REQUIRE(steps < 300);
    Collected test;
    const VersionRow base = test.publish_and_stage(1, "base");
    const VersionRow derived = test.publish_and_stage(2, "derived");
    test.remove(base);
    StopAfter stopped(steps);
    ended = collect_origin(test.open(), test, {kNow, {}, false}, stopped).ok() ? 1 : 0;
    CHECK(test.is_whole(derived));
    REQUIRE(test.collect().ok());
    CHECK(test.is_whole(derived));
    REQUIRE(test.collect().ok());
    CHECK(test.files("packs") == 4);
    CHECK(test.files("places") == 1);
    CHECK(test.files("manifests") == 1);
    CHECK(test.open().holds(derived.manifest));
  }
}

// The pack of base has three tensors, of which the copy of the stopped collection has two, and the last version needs
// one.
TEST_CASE("a copy that a collection left when it was stopped goes, although a version needs its blobs") {
  enum class Then : std::uint8_t { at_once, with_grace, purge };
  for (const Then then : {Then::at_once, Then::with_grace, Then::purge})
    for (int steps = 0, ended = 0; ended == 0; ++steps) {
      REQUIRE(steps < 300);
      Collected test;
      const VersionRow base = test.stage_tensors("base", {1, 2, 3});
      const VersionRow middle = test.stage_tensors("middle", {1, 2, 4});
      const VersionRow last = test.stage_tensors("last", {1, 5});
      test.remove(base);
      StopAfter stopped(steps);
      ended = collect_origin(test.open(), test, {kNow, {}, false}, stopped).ok() ? 1 : 0;
      test.remove(middle);
      std::set<ContentId> dead = test.blobs_of(middle);
      for (const ContentId& id : test.blobs_of(last)) dead.erase(id);
      OriginGcOptions first{kNow};  // lists the copy, and the next collection deletes it
      if (then == Then::with_grace) first.reading_ns = 3'600'000'000'000;
      if (then == Then::purge) first.blobs = dead;
      REQUIRE(collect_origin(test.open(), test, first, no_progress()).ok());
      CHECK(test.is_whole(last));
      if (then == Then::purge) REQUIRE(collect_origin(test.open(), test, first, no_progress()).ok());
      if (then != Then::purge) REQUIRE(test.collect().ok());
      for (const ContentId& id : dead) CHECK_FALSE(test.any_pack_has(id));
      CHECK(test.is_whole(last));
      REQUIRE(test.collect().ok());
      CHECK(test.is_whole(last));
      CHECK(test.files("packs") == 4);
      CHECK(test.files("places") == 1);
      CHECK(test.open().holds(last.manifest));
    }
}

TEST_CASE("a copy of a collection that goes on meanwhile is no orphan") {
  for (int steps = 0, ended = 0; ended == 0; ++steps) {
    REQUIRE(steps < 300);
    Collected test;
    const VersionRow base = test.stage_tensors("base", {1, 2, 3});
    const VersionRow derived = test.stage_tensors("derived", {1, 4});
    test.remove(base);
    StopAfter stopped(steps);
    ended = collect_origin(test.open(), test, {kNow, {}, false, false, 3'600'000'000'000}, stopped).ok() ? 1 : 0;
    int calls = 0;
    test.at_latest = [&] {
      if (++calls == 2) REQUIRE(test.collect_for(3'600'000'000'000).ok());
    };
    REQUIRE(test.collect().ok());
    CHECK(test.is_whole(derived));
    test.at_latest = [] {};
    for (int again = 0; again < 3; ++again) REQUIRE(test.collect().ok());
    CHECK(test.is_whole(derived));
    CHECK(test.files("packs") == 4);
  }
}

TEST_CASE("a collection deletes dead packs before it copies the needed blobs of others") {
  Collected test;
  const VersionRow base = test.stage_tensors("base", {1, 2, 3});
  const VersionRow derived = test.stage_tensors("derived", {1, 4});
  const VersionRow unlike = test.stage_tensors("unlike", {5, 6});
  test.remove(base);
  test.remove(unlike);
  std::vector<std::size_t> files;  // at each announcement
  test.after_announcement = [&] { files.push_back(test.files("packs")); };
  const auto done = test.collect();
  REQUIRE(done.ok());
  CHECK(files == std::vector<std::size_t>{6, 6});  // the second time two of them are the copy
  CHECK(done->packs_freed == 1);
  CHECK(done->packs_rewritten == 1);
  CHECK(test.files("packs") == 4);
  CHECK(test.is_whole(derived));
}

TEST_CASE("collections that rewrite the same pack at once lose nothing") {
  for (const bool late : {true, false}) {
    Collected test;
    const VersionRow base = test.publish_and_stage(1, "base");
    const VersionRow derived = test.publish_and_stage(2, "derived");
    const VersionRow third = test.publish_and_stage(3, "third");
    test.remove(base);
    int latest = 0;
    bool begun = false;
    const auto other = [&] {
      if (std::exchange(begun, true)) return;
      test.remove(derived);  // so the other one copies other blobs
      REQUIRE(test.collect().ok());
    };
    if (late) test.after_announcement = other;
    if (!late)
      test.at_latest = [&] {
        if (++latest == 2) other();  // after the plan
      };
    REQUIRE(test.collect().ok());
    CHECK(begun);
    CHECK(test.is_whole(third));
    REQUIRE(test.collect().ok());
    CHECK(test.is_whole(third));
    CHECK(test.open().holds(third.manifest));
    test.remove(third);
    REQUIRE(test.collect().ok());
    CHECK(test.files("packs") == 0);
    CHECK(test.files("places") == 0);
  }
}

TEST_CASE("a damaged pack is not rewritten, and hinders nothing else") {
  Collected test;
  const VersionRow base = test.publish_and_stage(1, "base");
  test.publish_and_stage(2, "derived");
  const VersionRow other = test.publish_and_stage(100, "other");
  const auto places = test.open().places(base.manifest);
  test.remove(base);
  test.remove(other);
  const std::string pack = origin_pack_name(test.dir.path(), places->blobs.front().second.pack);
  const auto bytes = std::filesystem::file_size(pack);
  std::filesystem::resize_file(pack, 0);
  std::filesystem::resize_file(pack, bytes);
  const auto done = test.collect();
  REQUIRE(done.ok());
  CHECK(done->packs_rewritten == 0);
  CHECK(done->packs_freed == 1);
  CHECK(std::filesystem::exists(pack));
}

TEST_CASE("a damaged manifest, or a damaged pack that a list names, stops no rewrite of other packs") {
  for (const bool listed : {false, true}) {
    CAPTURE(listed);
    Collected test;
    const VersionRow base = test.publish_and_stage(1, "base");
    const VersionRow derived = test.publish_and_stage(2, "derived");
    const VersionRow unlike = test.publish_unlike("unlike", 3), likes = test.publish_unlike("likes", 4);
    test.stage(unlike);
    test.stage(likes);
    const std::string manifest = test.dir.path() + "/manifests/" + to_hex(derived.manifest);
    const std::string aside = test.dir / "aside";
    const OriginDir origin = test.open();
    const PackId pack = origin.places(base.manifest)->blobs.front().second.pack;
    const std::string damaged = listed ? origin_pack_name(test.dir.path(), pack) : manifest;
    std::filesystem::copy_file(damaged, aside);
    std::filesystem::permissions(damaged, std::filesystem::perms::owner_all);
    const auto bytes = std::filesystem::file_size(damaged);
    std::filesystem::resize_file(damaged, 0);
    std::filesystem::resize_file(damaged, bytes);
    if (listed) {  // by a collection that was stopped
      FreedFiles freed;
      freed.sequence = 1;
      freed.packs = {pack};
      REQUIRE(put_freed(*origin.directory(), freed).ok());
      test.announced = {origin.uuid(), 1, kNow};
    }
    test.remove(base);
    test.remove(unlike);
    const auto done = test.collect();
    REQUIRE(done.ok());
    CHECK(done->packs_rewritten == 1);
    CHECK(test.is_whole(likes));
    std::filesystem::copy_file(aside, damaged, std::filesystem::copy_options::overwrite_existing);
    CHECK(test.is_whole(derived));
    CHECK(test.collect()->packs_rewritten == 1);
    CHECK(test.is_whole(derived));
  }
}

TEST_CASE("a purge rewrites only packs with blobs of its versions, and leaves other packs to their readers") {
  for (const bool rewritten : {false, true}) {
    Collected test;
    const VersionRow base = test.publish_and_stage(1, "base");
    const VersionRow derived = test.publish_and_stage(2, "derived");
    const VersionRow unlike = test.publish_unlike("unlike", 3), likes = test.publish_unlike("likes", 4);
    test.stage(unlike);
    test.stage(likes);
    test.remove(unlike);
    if (rewritten) CHECK(test.collect_for(3'600'000'000'000)->packs_rewritten == 1);
    test.remove(base);
    OriginGcOptions options{kNow};
    options.blobs.emplace();
    for (const auto& [id, place] : test.open().places(base.manifest)->blobs) options.blobs->insert(id);
    const std::size_t before = test.files("packs");
    const auto done = collect_origin(test.open(), test, options, no_progress());
    REQUIRE(done.ok());
    CHECK(done->packs_rewritten == 1);
    CHECK(done->packs_freed == 0);
    CHECK(done->dead_bytes == 0);
    CHECK(test.files("packs") == before);
    CHECK(test.is_whole(derived));
    CHECK(test.is_whole(likes));
    const auto rest = test.collect();
    CHECK(rest->packs_rewritten == (rewritten ? 0 : 1));
    CHECK(rest->packs_freed == (rewritten ? 1 : 0));
    CHECK(test.is_whole(likes));
  }
}

TEST_CASE("a former name of a manifest goes with the packs of its places, whatever else was rewritten") {
  Collected test;
  const VersionRow base = test.publish_and_stage(1, "base");
  const VersionRow derived = test.publish_and_stage(2, "derived");
  test.remove(base);
  REQUIRE(test.collect_for(3'600'000'000'000).ok());
  OriginDir origin = test.open();
  FreedFiles freed = origin.freed();
  REQUIRE(freed.rewritten.size() == 1);
  constexpr PackId kLast = ~PackId{0};  // another pack, rewritten later
  freed.packs.push_back(kLast);
  freed.rewritten.emplace_back(kLast, freed.rewritten.front().second);
  ++freed.sequence;
  REQUIRE(put_freed(*origin.directory(), freed).ok());
  REQUIRE(test.collect_for(3'600'000'000'000).ok());
  CHECK(test.files("places") == 2);
  freed.rewritten.front().second = 1;
  ++freed.sequence;
  REQUIRE(put_freed(*origin.directory(), freed).ok());
  test.announced = {origin.uuid(), freed.sequence, kNow};
  REQUIRE(test.collect_for(3'600'000'000'000).ok());
  CHECK(test.files("places") == 1);
  CHECK(test.files("manifests") == 1);
  CHECK(test.is_whole(derived));
}

TEST_CASE("a list of freed files is one that every node accepts, whatever names the origin has") {
  Collected test;
  const VersionRow stays = test.publish_and_stage(1, "stays");
  std::ofstream(test.dir.path() + "/manifests/" + std::string(64, '7') + ".1048576") << "x";
  test.remove(test.publish_and_stage(100, "goes"));
  REQUIRE(test.collect().ok());
  OriginDir origin = test.open();
  CHECK(origin.know_freed(test.announced.sequence).ok());
  FreedFiles bad;
  bad.sequence = test.announced.sequence + 1;
  bad.manifests = {{stays.manifest, (1U << 20U) + 1}};
  CHECK(put_freed(*origin.directory(), bad).error().code == Errc::corrupt);
  CHECK(origin.know_freed(0).ok());
  CHECK(test.is_whole(stays));
}

TEST_CASE("a version that is removed before it is at the origin does not stop a collection") {
  Collected test;
  const VersionRow row = test.publish_and_stage(1, "model");
  VersionRow gone = row;
  gone.number = 2;
  gone.uid = {1, 2};
  gone.manifest.bytes.fill(7);
  test.rows.push_back(gone);
  test.shown = test.rows;
  CHECK(test.collect().error().code == Errc::busy);
  test.rows.back().removed = true;
  test.rows.back().removed_ns = kNow + 1;
  CHECK(test.collect().ok());
  CHECK(test.is_whole(row));
}

TEST_CASE("a publish before the announcement keeps the packs that its stage-out found, staged or not") {
  for (const bool staged : {true, false}) {
    Collected test;
    test.remove(test.publish_and_stage(1, "base"));
    const OriginDir began = test.open();  // knows no list
    VersionRow derived;
    SearchedFor searched_for;
    const auto stage = [&] {
      return stage_version(RevocableStore(*test.node.store), began, derived, no_progress(), searched_for);
    };
    test.before_announcement = [&] {
      derived = test.publish(2, "derived");
      if (staged) REQUIRE(stage().ok());
    };
    CHECK(test.collect()->packs_freed == 0);
    REQUIRE(stage().ok());
    CHECK(test.is_whole(derived));
    CHECK(test.collect()->packs_freed == 0);
    test.remove(test.publish_and_stage(100, "other"));
    CHECK(test.collect()->packs_freed == 1);  // the new list does not name the pack any more
    CHECK(test.open().holds(derived.manifest));
  }
}

TEST_CASE("a stage-out after the announcement relies on no listed file, however late these go") {
  Collected test;
  const VersionRow first = test.publish_and_stage(1, "first");
  test.remove(first);
  const OriginDir late = test.open();
  const auto packs = late.packs();
  VersionRow again, derived;
  test.after_announcement = [&] {
    test.shown = test.rows;
    again = test.publish_and_stage(1, "again");  // the same manifest
    derived = test.publish_and_stage(2, "derived");
  };
  CHECK(test.collect()->packs_freed == 1);
  test.after_announcement = [] {};
  test.shown.reset();
  CHECK(again.manifest == first.manifest);
  CHECK(test.is_whole(again));
  CHECK(test.is_whole(derived));
  const auto directory = late.directory();
  for (const PackId pack : *packs) REQUIRE(remove_pack(*directory, pack).ok());
  REQUIRE(remove_manifest(*directory, {first.manifest, 0}).ok());
  CHECK(test.is_whole(again));
  test.remove(again);
  test.remove(derived);
  REQUIRE(test.collect().ok());
  CHECK(test.files("packs") == 0);
  CHECK(test.files("manifests") == 0);
  CHECK(test.files("places") == 0);
}

TEST_CASE("a node does not write before it sees the announced list") {
  Collected test;
  OriginDir origin = test.open();
  CHECK(origin.know_freed(0).ok());
  CHECK(origin.know_freed(1).error().code == Errc::busy);
  FreedFiles freed;
  freed.sequence = 2;
  REQUIRE(put_freed(*origin.directory(), freed).ok());
  CHECK(put_freed(*origin.directory(), freed).error().code == Errc::exists);
  const Status known = origin.know_freed(1);
  CHECK_MESSAGE(known.ok(), (known.ok() ? "" : known.error().message));
  CHECK(origin.freed().sequence == 2);
}

TEST_CASE("a collection that was stopped at any step is completed by the next one") {
  Collected test;
  const VersionRow stays = test.publish_and_stage(1, "stays");
  const VersionRow goes = test.publish_and_stage(100, "goes");
  test.remove(goes);
  test.announcement = Error{Errc::unreachable, "etcd is away"};
  CHECK(test.collect().error().code == Errc::unreachable);
  CHECK(test.is_whole(stays));
  test.announcement = {};
  HookProgress cancelled;
  test.after_announcement = [&] { cancelled.cancel = true; };
  CHECK(collect_origin(test.open(), test, {kNow, {}, false}, cancelled).error().code == Errc::cancelled);
  const PackId pack = test.open().freed().packs.at(0);
  REQUIRE(std::filesystem::remove(origin_toc_name(test.dir.path(), pack)));
  const auto done = test.collect();
  REQUIRE(done.ok());
  CHECK(done->packs_freed == 1);
  CHECK(test.files("packs") == 2);
  CHECK(test.is_whole(stays));
}

TEST_CASE("nothing is freed if the registry has lost history, or a live version's blobs are unknown") {
  Collected test;
  const VersionRow row = test.publish_and_stage(1, "model");
  const auto rows = std::exchange(test.rows, {});
  CHECK(test.collect().error().code == Errc::changed);
  test.rows = rows;
  CHECK(test.is_whole(row));
  VersionRow unknown = row;
  unknown.number = 2;
  unknown.uid = {1, 2};
  unknown.manifest.bytes.fill(7);
  test.rows.push_back(unknown);
  CHECK(test.collect().error().code == Errc::busy);
  CHECK(test.is_whole(row));
}

TEST_CASE("files that a writer left unfinished go after a day") {
  Collected test;
  const OriginDir origin = test.open();
  const std::string young = test.dir.path() + "/tmp/young", old = test.dir.path() + "/tmp/old";
  std::ofstream(young) << "x";
  std::ofstream(old) << "x";
  std::filesystem::last_write_time(old, std::filesystem::file_time_type::clock::now() - 25h);
  CHECK(test.collect()->unfinished_freed == 1);
  CHECK(std::filesystem::exists(young));
  CHECK(!std::filesystem::exists(old));
}

TEST_CASE("a pack whose table of contents is lost stays while a version has places in it") {
  Collected test;
  const VersionRow row = test.publish_and_stage(1, "model");
  const auto packs = test.open().packs();
  REQUIRE(packs->size() == 1);
  const std::string file = test.dir.path() + "/packs/" + pack_name(packs->front());
  std::filesystem::remove(file + ".toc");
  std::filesystem::last_write_time(file + ".pack", std::filesystem::file_time_type::clock::now() - 48h);
  CHECK(test.collect()->unfinished_freed == 0);
  CHECK(std::filesystem::exists(file + ".pack"));
  test.remove(row);
  CHECK(test.collect()->unfinished_freed == 1);
  CHECK(test.files("packs") == 0);
}

TEST_CASE("a listed pack goes, and stays listed, although versions need equal blobs again") {
  Collected test;
  test.remove(test.publish_and_stage(1, "first"));
  const OriginDir origin = test.open();
  FreedFiles freed;  // the list of a collection that was stopped
  freed.sequence = 1;
  freed.packs = *origin.packs();
  REQUIRE(freed.packs.size() == 1);
  REQUIRE(put_freed(*origin.directory(), freed).ok());
  test.announced = {origin.uuid(), 1, kNow};
  const VersionRow again = test.publish_and_stage(1, "again");
  REQUIRE(test.open().packs()->size() == 2);
  CHECK(test.collect()->packs_freed == 1);
  CHECK(test.is_whole(again));
  OriginDir later = test.open();
  REQUIRE(later.know_freed(0).ok());
  CHECK(later.freed().has_pack(freed.packs.front()));
}

}  // namespace weft::testing
