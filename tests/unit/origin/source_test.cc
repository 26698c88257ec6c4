// Large reads from an origin on a disk. tests/conformance covers the behaviour common to all sources.
#include "weft/cluster/origin.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "diskformat/pack_names.h"
#include "fakes/node_fixture.h"
#include "fetch/verified_source.h"
#include "origin/dir.h"
#include "origin/stage.h"
#include "os/direct_read.h"
#include "os/page_cache.h"
#include "os/sys.h"
#include "pace/pace_gate.h"
#include "store_paths.h"
#include "weft/deadline.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSize = (5U << 20U) + 1234;

// An origin with one version of one file, which has a large extent after its header.
struct LargeFile {
  Fixture node;
  TempDir dir;
  std::shared_ptr<BlobSource> source;
  VersionRow row;
  Extent extent;
  Fd pack;

  LargeFile() {
    auto origin = OriginDir::open(dir.path(), "cluster");
    REQUIRE(origin.ok());
    write_file(node.dir / "model/weights.safetensors",
               safetensors_file({{"weight", "U8", {kSize}, random_bytes(kSize, 5)}}));
    row = node.publish({node.dir / "model"}, "model").outcome.version;
    SearchedFor searched_for;
    REQUIRE(stage_version(RevocableStore(*node.store), *origin, row, no_progress(), searched_for).ok());
    source = origin_source(dir.path());
    const auto manifest = decode_manifest(*source->manifest(row.manifest, deadline_in(10s)));
    REQUIRE(manifest.ok());
    for (const Extent& one : manifest->files.front().extents)
      if (one.id.length == kSize) extent = one;
    REQUIRE(extent.offset % kDirectBlock != 0);
    auto opened = origin->open_pack(origin->packs()->front());
    REQUIRE(opened.ok());
    pack = std::move(opened).value();
    REQUIRE(sync_file(pack.get(), "pack").ok());
    forget_pages(pack.get(), 0, size());
  }
  std::uint64_t size() const { return static_cast<std::uint64_t>(stat_fd(pack.get(), "pack")->st_size); }
  std::uint64_t cached() const {
    const auto pages = cached_pages(pack.get(), 0, size());
    return pages.ok() ? *pages : 0;
  }
  std::string pack_file() const {
    return pack_path(dir.path(), OriginDir::open(dir.path(), "cluster")->packs()->front());
  }
  void check(std::uint64_t first, std::uint64_t count) const {
    const ChunkRun run{extent.id, first, count};
    const auto got = source->read(row.manifest, std::span(&run, 1), deadline_in(10s));
    REQUIRE_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message));
    const auto expected = random_bytes(kSize, 5);
    CHECK(std::ranges::equal(got->bytes(), std::span(expected).subspan(run.offset(), run.length())));
  }
};

}  // namespace

TEST_CASE("large reads bring the bytes that lie there, wherever they begin and end, and leave no pages behind") {
  const LargeFile test;
  if (test.cached() != 0) {
    MESSAGE("not tried: no page of a file can be dropped here");
    return;
  }
  test.check(0, 6);
  test.check(0, 4);
  test.check(1, 1);
  test.check(3, 2);
  test.check(4, 2);
  CHECK(test.cached() == 0);
}

TEST_CASE("paced reads bring the same bytes in small pieces, also after kept ones, and each counts for its class") {
  LargeFile test;
  const auto gate = std::make_shared<PaceGate>();
  gate->set({.origin = 1'000'000'000});
  test.source = origin_source(test.dir.path(), gate);
  const ChunkRun run{test.extent.id, 1, 5};
  const auto expected = random_bytes(kSize, 5);
  const auto wanted = std::span(expected).subspan(run.offset(), run.length());
  ReadAid aid;
  aid.traffic = Traffic::ahead;
  const auto got = test.source->read(test.row.manifest, std::span(&run, 1), deadline_in(10s), aid);
  REQUIRE_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message));
  CHECK(std::ranges::equal(got->bytes(), wanted));
  CHECK(got->givers.size() == 5);
  CHECK(gate->figures().bytes[1][1] == run.length());
  CHECK(gate->figures().pieces[1][1] == (run.length() + PaceLine::kPieceMax - 1) / PaceLine::kPieceMax);

  aid.traffic = Traffic::staging;
  const std::size_t kept = (1U << 20U) + 5;
  const auto memory = std::make_shared<std::byte[]>(kept);
  std::ranges::copy(wanted.first(kept), memory.get());
  aid.kept = {memory, kept};
  const auto rest = test.source->read(test.row.manifest, std::span(&run, 1), deadline_in(10s), aid);
  REQUIRE_MESSAGE(rest.ok(), (rest.ok() ? "" : rest.error().message));
  CHECK(std::ranges::equal(rest->bytes(), wanted));
  CHECK(gate->figures().bytes[2][1] == run.length() - kept);

  test.check(0, 6);  // a reader, whom the origin's rate does not hold back
  CHECK(gate->figures().pieces[0][1] == 1);
  CHECK(gate->figures().bytes[0][1] == kSize);
}

TEST_CASE("a paced read ends once nobody wants its bytes, and one of absent bytes fails") {
  LargeFile test;
  const auto gate = std::make_shared<PaceGate>();
  gate->set({.total = 1});
  test.source = origin_source(test.dir.path(), gate);
  const ChunkRun run{test.extent.id, 0, 2};
  int asked = 0;
  ReadAid aid;
  aid.is_wanted = [&] { return ++asked < 3; };
  const auto got = test.source->read(test.row.manifest, std::span(&run, 1), deadline_in(10s), aid);
  REQUIRE(!got.ok());
  CHECK(got.error().code == Errc::cancelled);
  CHECK(aid.held.count() == 0);
  gate->set({.total = 1'000'000'000});
  const ChunkRun absent{{1000, {}}, 0, 1};
  const auto none = test.source->read(test.row.manifest, std::span(&absent, 1), deadline_in(10s), aid);
  REQUIRE(!none.ok());
  CHECK(none.error().code == Errc::not_found);
}

TEST_CASE("bytes in the page cache are read from there") {
  const LargeFile test;
  std::vector<std::byte> all(test.size());
  REQUIRE(read_exact(test.pack.get(), 0, all, "pack").ok());
  test.check(1, 4);
  test.check(0, 6);
}

TEST_CASE("a pack that was cut short at the origin is told, also by a large read") {
  const LargeFile test;
  REQUIRE(::truncate(test.pack_file().c_str(), static_cast<off_t>(test.size() - 2 * kDirectBlock)) == 0);
  const ChunkRun run{test.extent.id, 2, 4};
  const auto got = test.source->read(test.row.manifest, std::span(&run, 1), deadline_in(10s));
  REQUIRE(!got.ok());
  CHECK(got.error().code == Errc::corrupt);
}

TEST_CASE("a read uses a replaced origin file after the open one turned out damaged") {
  const LargeFile test;
  const std::string file = test.pack_file();
  const std::string whole = read_text(file);
  VerifiedSource verified(test.source);
  const auto read = [&](std::uint64_t first, std::uint64_t count) {
    const ChunkRun run{test.extent.id, first, count};
    return verified.read(test.row.manifest, std::span(&run, 1), deadline_in(10s));
  };
  for (const std::string& damaged : {whole.substr(0, 8192), std::string(whole.size(), 'x')}) {
    write_file(file, damaged);
    CHECK(!read(0, 6).ok());
    CHECK(!read(1, 1).ok());
    write_file(file + ".new", whole);
    must(rename_file(file + ".new", file));
    const auto got = read(0, 6);
    CHECK_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message));
  }
}

}  // namespace weft::testing
