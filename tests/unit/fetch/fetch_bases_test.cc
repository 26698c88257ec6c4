#include "fetch/fetch_bases.h"

#include <doctest/doctest.h>

#include "away.h"

namespace weft::testing {
namespace {

// A node without local bytes.
class NoBytes final : public LocalBytes {
 public:
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override {
    return std::vector<OpenPlace>(runs.size());
  }
  Result<std::vector<Digest>> digests(const ContentId& /*id*/) override { return Error{Errc::not_found, "no bytes"}; }
};

// Two versions of one file, with local manifests. The blobs of the first version may be in a transfer.
struct TwoVersions {
  Away away{{100'000}};
  ContentId before = away.file.extents.front().id;
  FetchOptions options;
  FetchSources sources{{away.twin}, options.patience};
  ManifestFetch manifests{away.store, away.store, sources, options};
  NoBytes local;
  bool coming = true;
  int damaged = 0;
  FetchBases bases{{away.store, manifests, sources, local, [this](const ContentId&) { return coming; },
                    [this](const ContentId&) { ++damaged; }}};

  TwoVersions() {
    REQUIRE(manifests.resolve(away.version).ok());
    away.change({50'000});
  }
  std::shared_ptr<VersionBases> choose() {
    const auto content = manifests.content(away.version);
    REQUIRE(content.ok());
    return bases.choose(**content);
  }
};

}  // namespace

TEST_CASE("the base of a version is an earlier version whose bytes are local or coming") {
  TwoVersions two;
  SUBCASE("they are coming") {
    const auto chosen = two.choose();
    REQUIRE(chosen);
    CHECK(chosen->base() == "model@1");
    CHECK(chosen->find(two.away.file.extents.front().id)->base == two.before);
    CHECK(two.choose() == chosen);
  }
  SUBCASE("they are nowhere") {
    two.coming = false;
    CHECK(!two.choose());
  }
  SUBCASE("no base is wanted") {
    two.bases.allow(false);
    CHECK(!two.choose());
  }
}

TEST_CASE("a damaged base is reported once, and counts are those of all versions and of the last") {
  TwoVersions two;
  const auto chosen = two.choose();
  REQUIRE(chosen);
  two.bases.note_damage(*chosen, two.before);
  two.bases.note_damage(*chosen, two.before);
  CHECK(two.damaged == 1);
  CodedCounts counts;
  counts.asked = 2;
  two.bases.note_coded(nullptr, counts);
  CHECK(!two.bases.counts().last);
  two.bases.note_coded(chosen, counts);
  two.bases.note_coded(chosen, counts);
  CHECK(two.bases.counts().all.asked == 4);
  REQUIRE(two.bases.counts().last);
  CHECK(two.bases.counts().last->version == "model@2");
  CHECK(two.bases.counts().last->counts.asked == 4);
}

}  // namespace weft::testing
