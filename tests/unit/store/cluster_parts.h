// The parts of a store of node kHere in the cluster "test". The test delivers versions as a registry would.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "cluster_support.h"
#include "parts_support.h"
#include "store/cluster/store_cache.h"
#include "store/cluster/store_mirror.h"

namespace weft::testing {

struct ClusterParts : TestParts {
  ClusterParts() { must(mirror.join({"test", std::string(kHere)})); }
  void deliver(const MirrorChange& change) {
    if (!must(mirror.apply(std::span(&change, 1), ++revision)).problems.empty())
      throw std::runtime_error("an impossible change");
  }
  void adopt(std::string_view model, std::uint64_t number, const Files& files) {
    must(cache.adopt(std::vector<Adoption>{{std::string(model), number, manifest_of(files)}}));
  }
  // Delivers a version of this node, whose manifest is local.
  MirroredVersion deliver_own(std::string_view model, std::uint64_t number, const Files& files) {
    MirroredVersion own = record(model, number, files);
    own.version.publisher = kHere;
    must(parts->manifests.put(own.version.manifest, manifest_of(files)));
    deliver(own);
    return own;
  }
  PackId fetch(unsigned content) {
    const auto pack = must(cache.fetch_pack(content_id(content).length));
    write_content(*pack, content, 0);
    if (must(pack->add(std::vector{fetched(content, 0)})) != 1) throw std::runtime_error("fetched what is here");
    return pack->id();
  }

  std::uint64_t revision = 0;  // of the registry
  StoreMirror mirror{*parts};
  StoreCache cache{*parts};
};

}  // namespace weft::testing
