#include "origin/stage.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "fakes/node_fixture.h"
#include "fetch/verified_source.h"
#include "hanging_file.h"
#include "os/sys.h"
#include "pace/pace_gate.h"
#include "weft/cluster/origin.h"
#include "weft/deadline.h"
#include "weft/store/walk.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

struct Staged {
  Fixture node;
  TempDir dir;
  OriginDir origin = open(dir.path());

  static OriginDir open(const std::string& path) {
    auto opened = OriginDir::open(path, "cluster");
    REQUIRE(opened.ok());
    return std::move(opened).value();
  }
  VersionRow publish(std::uint64_t seed, const std::string& name) {
    write_model(node.dir / name, seed);
    return node.publish({node.dir / name}, name).outcome.version;
  }
  std::uint64_t stage(const VersionRow& row) const {
    HookProgress progress;
    SearchedFor searched_for;
    const Status staged = stage_version(RevocableStore(*node.store), origin, row, progress, searched_for);
    REQUIRE_MESSAGE(staged.ok(), (staged.ok() ? "" : staged.error().message));
    return progress.bytes_done;
  }
  // Reads and verifies all bytes of a version from the origin.
  void check_whole(const VersionRow& row) const {
    VerifiedSource source(origin_source(origin.path()));
    const auto manifest = source.manifest(row.manifest, deadline_in(10s));
    REQUIRE(manifest.ok());
    const auto decoded = decode_manifest(*manifest);
    REQUIRE(decoded.ok());
    for (const File& file : decoded->files)
      for (const Extent& extent : file.extents) {
        const ChunkRun all{extent.id, 0, (extent.id.length - 1) / kDigestChunk + 1};
        const auto got = source.read(row.manifest, std::span(&all, 1), deadline_in(10s));
        CHECK_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message));
      }
  }
};

}  // namespace

TEST_CASE("a rate makes small pieces of what is written to the origin") {
  Staged test;
  const VersionRow row = test.publish(7, "paced");
  PaceGate gate;
  gate.set({.staging = 1'000'000'000, .origin = 2'000'000'000});
  HookProgress progress;
  SearchedFor searched_for;
  REQUIRE(stage_version(RevocableStore(*test.node.store), test.origin, row, progress, searched_for, &gate).ok());
  test.check_whole(row);
  CHECK(progress.bytes_done > 0);
  const PaceFigures figures = gate.figures();
  CHECK(figures.bytes[2][1] == progress.bytes_done);
  CHECK(figures.pieces[2][1] >= progress.bytes_done / PaceLine::kPieceMax);
}

TEST_CASE("a staged version can be read from the origin alone") {
  Staged test;
  const VersionRow row = test.publish(1, "model");
  CHECK(test.stage(row) > 0);
  test.check_whole(row);
  CHECK(test.stage(row) == 0);
  CHECK(origin_totals(test.origin.path(), 10s)->versions == 1);
  CHECK(std::filesystem::is_empty(test.origin.path() + "/tmp"));
}

TEST_CASE("a derived version takes only what differs, in whatever order they come") {
  for (const bool derived_first : {false, true}) {
    Staged test;
    const VersionRow base = test.publish(1, "base");
    const VersionRow derived = test.publish(2, "derived");
    const std::uint64_t first = test.stage(derived_first ? derived : base);
    const std::uint64_t second = test.stage(derived_first ? base : derived);
    CHECK(second < 17'000);
    CHECK(first + second < 60'000);
    test.check_whole(base);
    test.check_whole(derived);
  }
}

TEST_CASE("two nodes may take equal content there, each its own way") {
  Staged one;
  const VersionRow ours = one.publish(1, "model");
  one.stage(ours);
  Fixture other;
  write_model(other.dir / "model", 1);
  const VersionRow theirs = other.publish({other.dir / "model"}, "model").outcome.version;
  SearchedFor searched_for;
  CHECK(stage_version(RevocableStore(*other.store), one.origin, theirs, no_progress(), searched_for).ok());
  one.check_whole(theirs);
}

TEST_CASE("a blob that was not at the origin is searched again after places got another name") {
  Staged test;
  write_model(test.node.dir / "theirs", 1);
  write_file(test.node.dir / "theirs/more.txt", "more");
  const VersionRow theirs = test.node.publish({test.node.dir / "theirs"}, "theirs").outcome.version;
  MirroredVersion change;  // its blobs are at the origin alone
  change.version = test.publish(1, "model");
  change.version.publisher = "00000000-0000-4000-8000-000000000002";
  change.tree_nodes = must(must(test.node.store->snapshot())->local(change.version.id)).ino_count;
  test.stage(theirs);
  const auto manifest = must(test.node.store->open_manifest(change.version.manifest));
  const std::string path = test.node.dir / "lacking";
  must(Store::create(path, {}));
  OpenOptions options;
  options.decode = content_decoder();
  const auto store = must(ClusterStore::open(path, options));
  must(store->mirror().join({"00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-000000000001"}));
  const auto applied = must(store->mirror().apply(std::vector<MirrorChange>{change}, 1));
  REQUIRE_MESSAGE(applied.problems.empty(), applied.problems.front());
  const Adoption adoption{"model", 1, {manifest->bytes().begin(), manifest->bytes().end()}};
  REQUIRE(store->cache().adopt(std::span(&adoption, 1)).ok());
  const VersionRow row = version_of(*store, "model@1").value();
  SearchedFor searched_for;
  const auto stage = [&] {
    return stage_version(RevocableStore(*store), test.origin, row, no_progress(), searched_for);
  };
  const std::string packs = test.origin.path() + "/packs", places = test.origin.path() + "/places/";
  std::filesystem::rename(packs, packs + ".aside");
  std::filesystem::create_directory(packs);
  CHECK(stage().error().code == Errc::absent);
  std::filesystem::remove(packs);
  std::filesystem::rename(packs + ".aside", packs);
  CHECK(stage().error().code == Errc::absent);  // the origin shows no change
  std::filesystem::copy_file(places + to_hex(theirs.manifest), places + to_hex(theirs.manifest) + ".1");
  CHECK(stage().ok());
}

TEST_CASE("an interrupted staging leaves no version, and the next one completes it") {
  Staged test;
  const VersionRow row = test.publish(1, "model");
  HookProgress cancelled;
  cancelled.cancel = true;
  SearchedFor searched_for;
  CHECK(stage_version(RevocableStore(*test.node.store), test.origin, row, cancelled, searched_for).error().code ==
        Errc::cancelled);
  CHECK(test.origin.places(row.manifest).error().code == Errc::not_found);
  test.stage(row);
  test.check_whole(row);
}

TEST_CASE("a store that is revoked while the origin hangs is not touched any more") {
  Staged test;
  const VersionRow row = test.publish(1, "model");
  const std::string hanging = test.origin.path() + "/places/" + to_hex(row.manifest);
  auto hangs = std::make_unique<HangingFile>(hanging);
  RevocableStore revocable(*test.node.store);
  Status staged;
  SearchedFor searched_for;
  std::thread behind([&] { staged = stage_version(revocable, test.origin, row, no_progress(), searched_for); });
  hangs->wait_for_opener();
  revocable.revoke();
  test.node.store.reset();
  hangs.reset();
  behind.join();
  CHECK(staged.error().code == Errc::cancelled);
}

}  // namespace weft::testing
