// Versions that are removed and that gc has not reaped: somebody has them open, or gc has not come by since. Their
// blobs have no holder in the index.
#pragma once

#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "store/env.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// Null: none.
using KeptBlobs = std::shared_ptr<const std::unordered_set<ContentId>>;

Result<std::vector<VersionRow>> unreaped_versions(Txn& txn);

// One thread.
class Unreaped {
 public:
  using Content = std::function<Result<VersionContent>(const Digest& manifest)>;
  using Counts = std::function<Result<bool>(VersionId version)>;
  // Of versions for which `counts` is true; empty: of all.
  Unreaped(Content content, Counts counts) : content_(std::move(content)), counts_(std::move(counts)) {}

  // What these versions of the transaction's state need, and perhaps what those of earlier states needed. Reads each
  // version's manifest once. Fails where a manifest is there and cannot be read: then nobody knows what to keep.
  Result<KeptBlobs> blobs(Txn& txn);

 private:
  Status add(const VersionRow& version, std::unordered_set<ContentId>& blobs);

  Content content_;
  Counts counts_;
  std::unordered_set<VersionId> known_;
  KeptBlobs kept_;
};

}  // namespace weft
