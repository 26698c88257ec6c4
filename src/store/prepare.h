// Prepares a publish, up to the decision of the registry.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "index/blobs.h"
#include "index/tables.h"
#include "packs/blob_index.h"
#include "store/promotion.h"
#include "weft/cluster_store.h"
#include "weft/result.h"

namespace weft {

class Importer;

// The parts of a prepared publish, without its packs.
struct PreparedParts {
  MirroredVersion record;
  std::vector<std::pair<std::string, std::uint64_t>> relies_on;
  Promotion promotion;  // the packs and the manifest that it relies on
};

// The versions and packs that a new version's content relies on, in one state of the index.
struct Reliance {
  std::vector<std::pair<std::string, std::uint64_t>> versions;  // live holders of blobs that have no open local pack
  std::set<PackId> held;                                        // older packs that the import has open
  std::set<PackId> cached;                                      // those of `held` that are cached
};
// Errc::invalid: a blob is neither among `fresh` nor in the index.
Result<Reliance> reliance_of(Txn& txn, const VersionContent& content, std::span<const NewBlob> fresh,
                             const Importer& import);

}  // namespace weft
