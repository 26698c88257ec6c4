#include "peers/directory.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/limits.h"
#include "base/sha256.h"
#include "testing.h"

namespace weft::testing {
namespace {

using Clock = PeerDirectory::Clock;

Digest manifest(std::uint64_t name) {
  return sha256(random_bytes(32, name));
}

}  // namespace

TEST_CASE("a directory returns announcements until they expire") {
  PeerDirectory directory;
  const auto begin = Clock::now();
  directory.put("one", {manifest(1), "", 1, {3}}, begin);
  directory.put("two", {manifest(1), "", 0, {}}, begin + std::chrono::seconds(1));
  directory.put("one", {manifest(1), "", 1, {7}}, begin + std::chrono::seconds(2));
  const std::vector<HadChunks> both{{manifest(1), "one", 1, {7}}, {manifest(1), "two", 0, {}}};
  CHECK(directory.find(manifest(1), begin + std::chrono::seconds(3)) == both);
  CHECK(directory.find(manifest(2), begin).empty());
  const auto later = directory.find(manifest(1), begin + std::chrono::seconds(1) + PeerDirectory::kKept);
  CHECK(later == std::vector<HadChunks>{both[0]});
  CHECK(directory.find(manifest(1), begin + 2 * PeerDirectory::kKept).empty());
}

TEST_CASE("a directory holds so many nodes of a manifest and no more, and so many bytes") {
  PeerDirectory directory;
  for (std::size_t i = 0; i < 2 * limits::kHoldersMax; ++i) directory.put(std::to_string(i), {manifest(1), "", 0, {}});
  CHECK(directory.find(manifest(1)).size() == limits::kHoldersMax);
  const std::vector<std::uint8_t> bits(limits::kAnnouncedBytesMax, 1);
  for (std::uint64_t i = 0; i < 3 * PeerDirectory::kBytesMax / bits.size(); ++i)
    directory.put("one", {manifest(100 + i), "", 1, bits});
  CHECK(directory.manifests() <= PeerDirectory::kBytesMax / bits.size() + 1);
}

TEST_CASE("all nodes agree whose turn it is, and few turns move with a node") {
  std::vector<std::string> nodes{"a", "b", "c", "d", "e"};
  std::vector<std::string> turned(nodes.rbegin(), nodes.rend());
  std::map<std::string, int> turns;
  int moved = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto before = directory_nodes(manifest(i), nodes, 2);
    REQUIRE(before.size() == 2);
    CHECK(before[0] != before[1]);
    CHECK(directory_nodes(manifest(i), turned, 2) == before);
    ++turns[before[0]];
    const auto after = directory_nodes(manifest(i), std::span(nodes).first(4), 1);
    if (after[0] != before[0]) ++moved;
    if (before[0] == "e") CHECK(after[0] == before[1]);
  }
  CHECK(moved == turns["e"]);
  CHECK(std::ranges::all_of(turns, [](const auto& one) { return one.second > 50; }));
  CHECK(directory_nodes(manifest(1), {}, 2).empty());
}

}  // namespace weft::testing
