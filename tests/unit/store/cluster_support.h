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

// Of the cluster "test", as its node kHere.
struct TestCluster {
  TestCluster();
  void open(CommitHooks hooks = {});
  void close() { store.reset(); }
  TestStore made;
  std::string path;
  std::unique_ptr<StoreImpl> store;
};

}  // namespace weft::testing
