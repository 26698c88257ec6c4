// The index as packs, imports and gc see it.
#pragma once

#include <memory>

#include "packs/blob_index.h"
#include "store/parts/journaled_index.h"

namespace weft {

class IndexedBlobs final : public IndexAccess {
 public:
  IndexedBlobs(JournaledIndex& index, const ClusterFacts& cluster) : index_(index), cluster_(cluster) {}
  Result<std::unique_ptr<BlobIndex>> read() override;
  // Errc::busy: a bare version may need any blob (check_judgeable()).
  Result<std::unique_ptr<BlobWriter>> write() override;

 private:
  JournaledIndex& index_;
  const ClusterFacts& cluster_;
};

// gc must know the content of all live versions. Errc::busy or, without a cluster, Errc::corrupt: the manifest of one
// is missing.
Status check_judgeable(Txn& txn, const ClusterFacts& cluster);

}  // namespace weft
