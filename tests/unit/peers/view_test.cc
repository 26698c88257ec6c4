#include "peers/view.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/sha256.h"
#include "fakes/blob_store.h"
#include "testing.h"

namespace weft::testing {
namespace {

using Kind = PeerCandidate::Kind;

ContentId blob(std::uint64_t name, std::uint64_t length) {
  return {length, sha256(random_bytes(8, name))};
}

// The view of a version by "publisher", with one blob of four chunks and one of one chunk.
struct Viewed {
  BlobStore store;
  PeerView view{store, "self"};
  const ContentId large = blob(1, 4 * kDigestChunk);
  const ContentId small = blob(2, 100);
  VersionRow row;

  Viewed() {
    row.id = 1;
    row.manifest = sha256(random_bytes(8, 99));
    row.publisher = "publisher";
    view.expect(row, {});
  }
  std::vector<std::pair<std::string, Kind>> of(const ChunkRun& run) {
    std::vector<std::pair<std::string, Kind>> out;
    for (const PeerCandidate& one : view.candidates(row.manifest, &run)) out.emplace_back(one.node, one.kind);
    return out;
  }
};

}  // namespace

TEST_CASE("the publisher is the holder of a version without announcements") {
  Viewed it;
  CHECK(it.of({it.large, 0, 4}) == std::vector<std::pair<std::string, Kind>>{{"publisher", Kind::first}});
  const auto of_manifest = it.view.candidates(it.row.manifest, nullptr);
  REQUIRE(of_manifest.size() == 1);
  CHECK(of_manifest[0].node == "publisher");
  CHECK(it.view.candidates(sha256({}), nullptr).empty());
}

TEST_CASE("a holder of the whole version is a candidate for all its bytes, and this node never is") {
  Viewed it;
  it.view.heard(it.row.manifest, {"self", "publisher", "whole"});
  const std::vector<std::pair<std::string, Kind>> both{{"whole", Kind::holder}, {"publisher", Kind::first}};
  CHECK(it.of({it.large, 1, 2}) == both);
  CHECK(it.of({it.small, 0, 1}) == both);
  it.view.heard(it.row.manifest, {});
  CHECK(it.of({it.small, 0, 1}).size() == 1);
}

TEST_CASE("a peer that lacked a blob is a candidate again once it is newly listed") {
  Viewed it;
  const ChunkRun run{it.large, 0, 1};
  it.view.heard(it.row.manifest, {"whole"});
  it.view.lacks(it.row.manifest, &run, "whole");
  it.view.heard(it.row.manifest, {"whole"});
  CHECK(it.of(run).size() == 1);
  it.view.heard(it.row.manifest, {});
  it.view.heard(it.row.manifest, {"whole"});
  CHECK(it.of(run).size() == 2);
}

TEST_CASE("a peer that lacks a blob is left out for that blob for a while") {
  Viewed it;
  const ChunkRun run{it.large, 0, 1};
  it.view.lacks(it.row.manifest, &run, "publisher");
  CHECK(it.of(run).empty());
  CHECK(it.of({it.small, 0, 1}).size() == 1);
  CHECK(it.view.candidates(it.row.manifest, nullptr).size() == 1);
}

TEST_CASE("a node whose own version is read asks others") {
  Viewed it;
  it.row.publisher = "self";
  it.view.expect(it.row, {});
  CHECK(it.of({it.large, 0, 1}).empty());
  it.view.heard(it.row.manifest, {"whole"});
  CHECK(it.of({it.large, 0, 1}).size() == 1);
}

TEST_CASE("directories are asked while a version is read, at a bounded rate") {
  Viewed it;
  CHECK(it.view.to_ask(std::chrono::hours(1)) == std::vector<Digest>{it.row.manifest});
  CHECK(it.view.to_ask(std::chrono::hours(1)).empty());
  CHECK(it.view.to_ask(std::chrono::milliseconds(0)).size() == 1);
}

TEST_CASE("the first publisher of a blob is a candidate for that blob alone") {
  Viewed it;
  const Digest base = sha256(random_bytes(8, 98));
  it.store.own(it.large, it.store.add_version(base, "first"));
  it.row.id = 2;
  it.view.expect(it.row, std::vector{it.large, it.small});
  CHECK(it.of({it.large, 0, 4}) ==
        std::vector<std::pair<std::string, Kind>>{{"first", Kind::first}, {"publisher", Kind::first}});
  CHECK(it.of({it.small, 0, 1}) == std::vector<std::pair<std::string, Kind>>{{"publisher", Kind::first}});
  // The holders of that version hold the blob too, so they are looked up as well.
  const auto to_ask = it.view.to_ask(std::chrono::milliseconds(0));
  CHECK(std::ranges::find(to_ask, base) != to_ask.end());
  it.view.heard(base, {"whole"});
  CHECK(it.of({it.large, 0, 4}).size() == 3);
  CHECK(it.of({it.small, 0, 1}).size() == 1);
}

TEST_CASE("a version's own blobs are requested from its publisher alone") {
  Viewed it;
  it.store.own(it.large, it.row.id);
  it.view.expect(it.row, std::vector{it.large});
  CHECK(it.of({it.large, 0, 4}) == std::vector<std::pair<std::string, Kind>>{{"publisher", Kind::first}});
}

TEST_CASE("without a known holder all nodes are candidates, publishers of parents first") {
  Viewed it;
  const std::vector<std::string> nodes{"self", "a", "parent", "publisher"};
  const ChunkRun run{it.large, 0, 1};
  ParentRef parent{"base", 1, true, 1, 100, it.store.add_version(sha256(random_bytes(8, 98)), "parent")};
  ParentRef shares_nothing{"other", 1, true, 0, 0, it.store.add_version(sha256(random_bytes(8, 97)), "a")};
  it.row.parents = {shares_nothing, parent};
  it.view.expect(it.row, {});
  it.view.lacks(it.row.manifest, &run, "publisher");
  const auto others = it.view.others(it.row.manifest, &run, nodes);
  REQUIRE(others.size() == 2);
  CHECK(others[0].node == "parent");
  CHECK(others[0].kind == Kind::holder);
  CHECK(others[1].node == "a");
  CHECK(others[1].kind == Kind::first);
  it.view.lacks(it.row.manifest, &run, "parent");
  CHECK(it.view.others(it.row.manifest, &run, nodes).size() == 1);
  CHECK(it.view.others(sha256({}), nullptr, nodes).size() == 3);
}

TEST_CASE("a node that sent unannounced bytes is a candidate for the version's other bytes") {
  Viewed it;
  const ChunkRun run{it.large, 0, 1};
  it.view.gave(it.row.manifest, "a");
  it.view.gave(it.row.manifest, "a");
  CHECK(it.of(run) == std::vector<std::pair<std::string, Kind>>{{"publisher", Kind::first}, {"a", Kind::first}});
  it.view.lacks(it.row.manifest, &run, "a");
  CHECK(it.of(run).size() == 1);
  CHECK(it.of({it.small, 0, 1}).size() == 2);
}

}  // namespace weft::testing
