// A store in a cluster, driven by hand: versions come as a registry would tell of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "index_support.h"
#include "weft/cluster_store.h"

namespace weft::testing {

inline constexpr std::string_view kHere = "00000000-0000-4000-8000-000000000001";
inline constexpr std::string_view kElsewhere = "00000000-0000-4000-8000-000000000002";

// What kElsewhere has published.
MirroredVersion record(std::string_view model, std::uint64_t number, const Files& files);
// Returns the problems. Throws when it fails.
std::vector<std::string> mirror(ClusterStore& store, const std::vector<MirrorChange>& changes, std::uint64_t revision);
Status adopt(ClusterStore& store, std::string_view model, std::uint64_t number, const Files& files);

// Fetches these contents, one behind the other, into a cached pack. Throws when it fails.
PackId fetch(ClusterStore& store, const std::vector<unsigned>& contents);
void write_content(FetchPack& pack, unsigned content, std::uint64_t offset);
FetchedBlob fetched(unsigned content, std::uint64_t offset);

// Imports the contents `read`, and prepares a version of `files`, which may have others too.
Result<std::unique_ptr<PreparedPublish>> prepare(ClusterStore& store, std::string_view model, const Files& files,
                                                 const std::vector<unsigned>& read,
                                                 Durability durability = Durability::local);

// Of the cluster "test", as its node kHere.
struct TestCluster {
  TestCluster();
  void open(CommitHooks hooks = {});
  void close() { store.reset(); }
  TestStore made;
  std::string path;
  std::unique_ptr<StoreImpl> store;
};

// What a reader of the content gets.
inline bool reads_well(Store& store, unsigned content) {
  auto place = store.open_blob(content_id(content));
  if (!place.ok()) return false;
  std::vector<std::byte> bytes(content_id(content).length);
  must(read_exact(place->pack->fd(), place->offset, bytes, "pack"));
  return bytes == content_bytes(content);
}

}  // namespace weft::testing
