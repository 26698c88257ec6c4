#include "peers/view.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/sha256.h"
#include "fakes/blob_store.h"
#include "testing.h"

namespace weft::testing {
namespace {

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
  std::vector<std::string> of(const ChunkRun& run) { return view.candidates(row.manifest, &run); }
};

using Nodes = std::vector<std::string>;

}  // namespace

TEST_CASE("the publisher is the holder of a version without announcements") {
  Viewed it;
  CHECK(it.of({it.large, 0, 4}) == Nodes{"publisher"});
  CHECK(it.view.candidates(it.row.manifest, nullptr) == Nodes{"publisher"});
  CHECK(it.view.candidates(sha256({}), nullptr).empty());
}

TEST_CASE("a holder of the whole version is a candidate for all its bytes, and this node never is") {
  Viewed it;
  it.view.heard(it.row.manifest, {"self", "publisher", "whole"});
  CHECK(it.of({it.large, 1, 2}) == Nodes{"publisher", "whole"});
  CHECK(it.of({it.small, 0, 1}) == Nodes{"publisher", "whole"});
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
  CHECK(it.of({it.large, 0, 4}) == Nodes{"first", "publisher"});
  CHECK(it.of({it.small, 0, 1}) == Nodes{"publisher"});
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
  CHECK(it.of({it.large, 0, 4}) == Nodes{"publisher"});
}

TEST_CASE("publishers of parents that share bytes are known, and nodes that lack the bytes are left out") {
  Viewed it;
  const Nodes nodes{"self", "a", "parent", "publisher"};
  const ChunkRun run{it.large, 0, 1};
  ParentRef parent{"base", 1, true, 1, 100, it.store.add_version(sha256(random_bytes(8, 98)), "parent")};
  ParentRef shares_nothing{"other", 1, true, 0, 0, it.store.add_version(sha256(random_bytes(8, 97)), "a")};
  it.row.parents = {shares_nothing, parent};
  it.view.expect(it.row, {});
  it.view.lacks(it.row.manifest, &run, "publisher");
  CHECK(it.view.kin(it.row.manifest, &run) == Nodes{"parent"});
  CHECK(it.view.among(nodes, it.row.manifest, &run) == Nodes{"a", "parent"});
  it.view.lacks(it.row.manifest, &run, "parent");
  CHECK(it.view.kin(it.row.manifest, &run).empty());
  CHECK(it.view.among(nodes, it.row.manifest, &run) == Nodes{"a"});
  CHECK(it.view.kin(sha256({}), nullptr).empty());
  CHECK(it.view.among(nodes, sha256({}), nullptr).size() == 3);
}

TEST_CASE("a node that sent unannounced bytes is a candidate for the version's other bytes") {
  Viewed it;
  const ChunkRun run{it.large, 0, 1};
  it.view.gave(it.row.manifest, "a");
  it.view.gave(it.row.manifest, "a");
  CHECK(it.of(run) == Nodes{"publisher", "a"});
  it.view.lacks(it.row.manifest, &run, "a");
  CHECK(it.of(run).size() == 1);
  CHECK(it.of({it.small, 0, 1}).size() == 2);
}

}  // namespace weft::testing
