// A publish up to the point where a registry decides.
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

// What there is of a prepared publish besides its packs.
struct PreparedParts {
  MirroredVersion record;
  std::vector<std::pair<std::string, std::uint64_t>> relies_on;
  Promotion promotion;  // what it made this node's own
};

// Where a version's content is, of one state of the index.
struct Reliance {
  std::vector<std::pair<std::string, std::uint64_t>> versions;  // live holders of what is not here, or not held
  std::set<PackId> held;                                        // packs that were here before
  std::set<PackId> cached;                                      // of these, those that are only cached so far
};
// Errc::invalid: content that is neither among `fresh` nor known.
Result<Reliance> reliance_of(Txn& txn, const VersionContent& content, std::span<const NewBlob> fresh,
                             const Importer& import);

}  // namespace weft
