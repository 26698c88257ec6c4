#include "peers/swarm/version_units.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "fakes/manual_time.h"
#include "fakes/twin_source.h"
#include "peers/directory.h"
#include "peers/swarm/local_units.h"
#include "peers/swarm/node_numbers.h"
#include "peers/swarm/version_source.h"
#include "unit/peers_swarm/test_version.h"

namespace weft::testing {
namespace {

std::shared_ptr<const VersionUnits> units_of(const std::vector<ContentId>& blobs) {
  return std::make_shared<const VersionUnits>(manifest_of(blobs));
}

bool same(const std::vector<ChunkRun>& some, const std::vector<ChunkRun>& others) {
  return std::ranges::equal(some, others, [](const ChunkRun& one, const ChunkRun& other) {
    return one.id == other.id && one.first == other.first && one.count == other.count;
  });
}

using Range = std::pair<std::uint32_t, std::uint32_t>;

// Two chunks in each unit; the unit 16,383 has the last chunk of one blob and the first one of the other.
const ContentId kLong = blob_named(1, 32'767 * kDigestChunk - 5);
const ContentId kShort = blob_named(2, 3 * kDigestChunk);

// Single chunks of blobs. Its places are all the same.
class SomeChunks final : public LocalBytes {
 public:
  std::set<std::pair<ContentId, std::uint64_t>> chunks;
  std::size_t asked = 0;  // runs

  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override {
    std::vector<OpenPlace> places;
    for (const ChunkRun& run : runs) {
      ++asked;
      bool all = true;
      for (std::uint64_t i = 0; i < run.count; ++i) all = all && chunks.contains({run.id, run.first + i});
      places.push_back(all ? version_.place(0) : OpenPlace{});
    }
    return places;
  }
  Result<std::vector<Digest>> digests(const ContentId& /*id*/) override { return std::vector<Digest>{}; }

 private:
  TestVersion version_{1};
};

}  // namespace

TEST_CASE("the chunks of distinct blobs are numbered in the order of their first places, file by file") {
  const ContentId a = blob_named(1, 3 * kDigestChunk + 1);
  const ContentId b = blob_named(2, 100);
  const ContentId c = blob_named(3, 2 * kDigestChunk);
  Manifest manifest = manifest_of(std::vector{a, b});
  manifest.files.push_back(manifest_of(std::vector{b, c, a}).files.front());
  const VersionUnits units(manifest);
  CHECK(units.units().chunks() == 4 + 1 + 2);
  CHECK(same(units.blobs(), {{a, 0, 4}, {b, 0, 1}, {c, 0, 2}}));
  CHECK(units.numbers_of({a, 0, 4})->first == 0);
  CHECK(units.numbers_of({b, 0, 1})->first == 4);
  CHECK(units.numbers_of({c, 1, 1})->first == 6);
  CHECK(!units.numbers_of({c, 1, 2}));
  CHECK(!units.numbers_of({blob_named(5, 100), 0, 1}));
}

TEST_CASE("a unit of a small version is one chunk, numbered as the chunks of its blobs") {
  const ContentId a = blob_named(1, 3 * kDigestChunk + 7);
  const ContentId b = blob_named(2, 100);
  const ContentId c = blob_named(3, 2 * kDigestChunk);
  const auto units = units_of({a, b, a, c});
  REQUIRE(units->count() == 4 + 1 + 2);
  for (std::uint32_t unit = 0; unit < 4; ++unit) CHECK(same(units->runs(unit), {{a, unit, 1}}));
  CHECK(same(units->runs(4), {{b, 0, 1}}));
  CHECK(same(units->runs(5), {{c, 0, 1}}));
  CHECK(same(units->runs(6), {{c, 1, 1}}));
  CHECK(units->bytes(2) == kDigestChunk);
  CHECK(units->bytes(3) == 7);
  CHECK(units->bytes(4) == 100);
  CHECK(units->units_of({a, 1, 3}) == Range(1, 3));
  CHECK(units->units_of({b, 0, 1}) == Range(4, 4));
  CHECK(units->units_of({c, 0, 2}) == Range(5, 6));
  CHECK(same(units->blobs(), {{a, 0, 4}, {b, 0, 1}, {c, 0, 2}}));
}

TEST_CASE("a unit of several chunks has a run for each blob that it spans") {
  const auto units = units_of({kLong, kShort});
  REQUIRE(units->units().chunks_per_unit() == 2);
  REQUIRE(units->count() == 16'385);
  CHECK(same(units->runs(0), {{kLong, 0, 2}}));
  CHECK(same(units->runs(16'383), {{kLong, 32'766, 1}, {kShort, 0, 1}}));
  CHECK(same(units->runs(16'384), {{kShort, 1, 2}}));
  CHECK(units->bytes(16'383) == 2 * kDigestChunk - 5);
  CHECK(units->units_of({kLong, 3, 1}) == Range(1, 1));
  CHECK(units->units_of({kLong, 3, 2}) == Range(1, 2));
  CHECK(units->units_of({kLong, 0, 32'767}) == Range(0, 16'383));
  CHECK(units->units_of({kShort, 0, 3}) == Range(16'383, 16'384));
}

TEST_CASE("chunks that a version lacks are in none of its units") {
  const ContentId a = blob_named(1, 3 * kDigestChunk);
  const auto units = units_of({a});
  CHECK(!units->units_of({blob_named(2, 3 * kDigestChunk), 0, 1}));
  CHECK(!units->units_of({a, 0, 0}));
  CHECK(!units->units_of({a, 3, 1}));
  CHECK(!units->units_of({a, 0, 4}));
  CHECK(!units->units_of({a, 1, UINT64_MAX}));
  CHECK(!units->units_of({a, UINT64_MAX, 2}));
  CHECK(units->units_of({a, 2, 1}) == Range(2, 2));
}

TEST_CASE("a unit is complete with the last of its chunks") {
  const auto units = units_of({kLong, kShort});
  LocalUnits local(units);
  const auto add = [&](const ChunkRun& run) { return local.add(std::span(&run, 1)); };
  using Units = std::vector<std::uint32_t>;
  CHECK(add({kLong, 32'766, 1}).empty());
  CHECK(add({blob_named(3, 1), 0, 1}).empty());
  CHECK(local.complete().count() == 0);
  CHECK(add({kShort, 0, 1}) == Units{16'383});
  CHECK(add({kShort, 0, 1}).empty());
  CHECK(add({kShort, 1, 2}) == Units{16'384});
  CHECK(add({kLong, 0, 5}) == Units{0, 1});
  CHECK(local.complete().count() == 4);
  local.remove(16'383);
  CHECK(!local.complete().has(16'383));
  CHECK(add({kShort, 0, 1}).empty());
  CHECK(add({kLong, 32'766, 1}) == Units{16'383});
  CHECK(add({kLong, 4, 2}) == Units{2});
}

TEST_CASE("the local chunks of a version are whole blobs, and single chunks of the others") {
  const ContentId a = blob_named(1, 3 * kDigestChunk);
  const ContentId b = blob_named(2, 300 * kDigestChunk);
  const ContentId c = blob_named(3, 100);
  const auto units = units_of({a, b, c});
  SomeChunks some;
  for (std::uint64_t i = 0; i < 3; ++i) some.chunks.emplace(a, i);
  some.chunks.emplace(b, 2);
  some.chunks.emplace(b, 299);
  CHECK(same(local_runs(*units, some), {{a, 0, 3}, {b, 2, 1}, {b, 299, 1}}));
  CHECK(some.asked == 3 + 300);  // the blob of one chunk is asked for once
}

TEST_CASE("a version's units are found by its local manifest, and are read once while they are in use") {
  TestVersion version(3);
  LocalVersionUnits local(version.store());
  const auto units = must(local.find(version.manifest()));
  CHECK(units->count() == 3);
  CHECK(must(local.find(version.manifest())) == units);
  CHECK(local.find(Digest{}).error().code == Errc::not_found);
}

TEST_CASE("a version whose units are too large for an answer takes no part in a swarm") {
  const std::uint64_t chunks = LocalVersionUnits::kChunksPerUnitMax * kUnitsMax;
  for (const std::uint64_t more : {0, 1}) {
    CAPTURE(more);
    TestVersion store(1);
    const ContentId blob = blob_named(7, (chunks + more) * kDigestChunk);
    const auto encoded = must(encode_manifest(manifest_of(std::span(&blob, 1))));
    store.store().add_manifest(encoded);
    LocalVersionUnits local(store.store());
    const auto found = local.find(sha256(encoded));
    CHECK(found.ok() == (more == 0));
    if (!found.ok()) CHECK(found.error().code == Errc::unsupported);
  }
}

TEST_CASE("the units of a version whose manifest is not local are read at another source, and verified") {
  TestVersion store(1);
  const ContentId blob = blob_named(7, 5 * kDigestChunk);
  const auto encoded = must(encode_manifest(manifest_of(std::span(&blob, 1))));
  TwinSource origin;
  LocalVersionUnits local(store.store());
  const auto find = [&] { return local.find_at(origin, sha256(encoded), deadline_in(std::chrono::seconds(30))); };
  CHECK(!find().ok());
  auto other = encoded;
  other.back() ^= std::byte{1};
  origin.put_manifest(sha256(encoded), other);
  CHECK(find().error().code == Errc::corrupt);
  origin.put_manifest(sha256(encoded), encoded);
  const auto found = must(find());
  CHECK(found->count() == 5);
  CHECK(must(find()) == found);
  CHECK(must(local.find_at(origin, store.manifest(), deadline_in(std::chrono::seconds(30))))->count() == 1);
}

TEST_CASE("a node has one number until it is forgotten, and no other node gets it") {
  NodeNumbers nodes;
  const auto a = nodes.add("a");
  const auto b = nodes.add("b");
  REQUIRE(a);
  REQUIRE(b);
  CHECK(a != b);
  CHECK(nodes.add("a") == a);
  CHECK(nodes.find("b") == b);
  CHECK(nodes.name(*b) == "b");
  nodes.forget(*a);
  CHECK(!nodes.find("a"));
  CHECK(nodes.name(*a).empty());
  CHECK(nodes.add("c") != a);
  CHECK(nodes.size() == 2);
  nodes.forget_if([&](SwarmNode node) { return node == *b; });
  CHECK(!nodes.find("b"));
  CHECK(nodes.name(*b).empty());
  CHECK(nodes.find("c"));
}

TEST_CASE("the source of a version that nobody is known to have published is a member that has announced all of it") {
  TestVersion version(2);
  PeerDirectory directory;
  std::set<std::string> members;
  VersionSource source(version.store(), directory, [&](const std::string& node) { return members.contains(node); });
  CHECK(source.find(version.manifest()).empty());
  for (const char* node : {"a", "b"}) directory.put(node, {version.manifest(), true});
  CHECK(source.find(version.manifest()).empty());
  members = {"b"};
  CHECK(source.find(version.manifest()) == "b");
  CHECK(source.find(Digest{}).empty());
}

TEST_CASE("manifests that no version has do not make a directory node search without a pause") {
  TestVersion version(2);
  PeerDirectory directory;
  ManualTime time;
  VersionSource source(
      version.store(), directory, [](const std::string& /*node*/) { return true; }, time);
  const auto searches = [&](std::uint64_t number) {
    const int before = version.store().snapshots;
    CHECK(source.find(blob_named(number, 0).root).empty());
    return version.store().snapshots > before;
  };
  CHECK(searches(0));
  for (std::uint64_t number = 1; number < 10'000; ++number) CHECK(!searches(number));
  time.pass(VersionSource::kPauseMin);
  CHECK(searches(10'000));
  CHECK(!searches(10'001));
}

}  // namespace weft::testing
