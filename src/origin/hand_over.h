// Turns packs that this node must keep into cache, if the origin has their bytes too.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "weft/bytes/cold.h"
#include "weft/cluster/origin.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store/store.h"

namespace weft {

struct HandOverOptions {
  std::string origin;
  std::optional<VersionId> version;            // only packs with blobs of this version
  std::chrono::milliseconds patience{10'000};  // longest wait for the origin, per pack
  std::function<bool()> cancelled = [] { return false; };
};
// Turns a pack into cache if, according to the origin's files, the origin has every blob in it that a version needs, in
// packs of the right size. A pack stays owned if a recent publish stored or reused its blobs, or if the origin lacks a
// version with blobs in it. Errc::timed_out: the origin does not answer. Errc::cancelled. `ledger` and `cache`
// belong to `store`.
Result<HandOverReport> hand_over(Store& store, OriginLedger& ledger, FetchedCache& cache, ManifestResolver& resolver,
                                 const HandOverOptions& options);

}  // namespace weft
