// A store in a cluster, driven by hand: the test delivers versions as a registry would.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "index_support.h"
#include "weft/store/cluster_store.h"

namespace weft::testing {

inline constexpr std::string_view kHere = "00000000-0000-4000-8000-000000000001";
inline constexpr std::string_view kElsewhere = "00000000-0000-4000-8000-000000000002";

// A version that kElsewhere has published.
MirroredVersion record(std::string_view model, std::uint64_t number, const Files& files);
MirroredVersion tombstone(MirroredVersion version, std::uint64_t removed_ns);
// Mirrors the changes and returns the problems. Throws on failure.
std::vector<std::string> mirror(ClusterStore& store, const std::vector<MirrorChange>& changes, std::uint64_t revision);
Status adopt(ClusterStore& store, std::string_view model, std::uint64_t number, const Files& files);

// Fetches these contents into a cached pack, one after the other. Throws on failure.
PackId fetch(ClusterStore& store, const std::vector<unsigned>& contents);
void write_content(FetchPack& pack, unsigned content, std::uint64_t offset);
FetchedBlob fetched(unsigned content, std::uint64_t offset);

// Makes a file as old as this.
void set_age(const std::string& path, std::uint64_t seconds);

// Imports the contents `read`, and prepares a version of `files`, which may have further contents.
Result<std::unique_ptr<PreparedPublish>> prepare(ClusterStore& store, std::string_view model, const Files& files,
                                                 const std::vector<unsigned>& read,
                                                 Durability durability = Durability::local);

// A store of node kHere in the cluster "test".
struct TestCluster {
  TestCluster();
  void open(CommitHooks hooks = {});
  void close() { store.reset(); }
  TestStore made;
  std::string path;
  std::unique_ptr<StoreImpl> store;
};

// True if a reader gets the right bytes of the content.
inline bool reads_well(Store& store, unsigned content) {
  auto place = store.open_blob(content_id(content));
  if (!place.ok()) return false;
  std::vector<std::byte> bytes(content_id(content).length);
  must(read_exact(place->pack->fd(), place->offset, bytes, "pack"));
  return bytes == content_bytes(content);
}

}  // namespace weft::testing
