#include "peers/directory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

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

TEST_CASE("a directory returns the nodes with a whole version until their announcements expire") {
  PeerDirectory directory;
  const auto begin = Clock::now();
  directory.put("one", {manifest(1), true}, begin);
  directory.put("two", {manifest(1), true}, begin + std::chrono::seconds(1));
  directory.put("one", {manifest(1), true}, begin + std::chrono::seconds(2));
  CHECK(directory.find(manifest(1), begin + std::chrono::seconds(3)) == std::vector<std::string>{"one", "two"});
  CHECK(directory.find(manifest(2), begin).empty());
  const auto later = directory.find(manifest(1), begin + std::chrono::seconds(1) + PeerDirectory::kKept);
  CHECK(later == std::vector<std::string>{"one"});
  CHECK(directory.find(manifest(1), begin + 2 * PeerDirectory::kKept).empty());
}

TEST_CASE("a directory drops a node that withdraws its announcement") {
  PeerDirectory directory;
  directory.put("one", {manifest(1), false});
  CHECK(directory.manifests() == 0);
  directory.put("one", {manifest(1), true});
  directory.put("two", {manifest(1), true});
  directory.put("one", {manifest(1), false});
  directory.put("one", {manifest(2), false});
  CHECK(directory.find(manifest(1)) == std::vector<std::string>{"two"});
}

TEST_CASE("a directory holds so many nodes of a manifest and no more, so many manifests, and so many nodes in all") {
  PeerDirectory directory;
  for (std::size_t i = 0; i < 2 * limits::kHoldersMax; ++i) directory.put(std::to_string(i), {manifest(1), true});
  CHECK(directory.find(manifest(1)).size() == limits::kHoldersMax);
  const auto named = [](std::uint64_t number) {
    Digest digest;
    std::memcpy(digest.bytes.data(), &number, sizeof number);
    return digest;
  };
  for (std::uint64_t i = 0; i < PeerDirectory::kManifestsMax + 10; ++i) directory.put("one", {named(i), true});
  CHECK(directory.manifests() <= PeerDirectory::kManifestsMax);
  PeerDirectory crowded;
  constexpr std::uint64_t kFull = PeerDirectory::kEntriesMax / limits::kHoldersMax;  // manifests with the most nodes
  for (std::uint64_t i = 0; i < kFull + 10; ++i)
    for (std::size_t node = 0; node < limits::kHoldersMax; ++node) crowded.put(std::to_string(node), {named(i), true});
  CHECK(crowded.manifests() <= kFull);
  CHECK(crowded.find(named(kFull + 9)).size() == limits::kHoldersMax);
}

}  // namespace weft::testing
