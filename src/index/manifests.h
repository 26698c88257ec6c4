// Manifest rows of the index: how many versions need a manifest, and its place if it is in a pack. A manifest that no
// version needs has no row.
#pragma once

#include <optional>

#include "diskformat/rows.h"
#include "index/env.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The content id of a manifest in a pack.
ContentId packed_manifest_id(const Digest& digest, std::uint64_t length);

Result<std::optional<ManifestRow>> find_manifest(Txn& txn, const Digest& digest);
Status need_manifest(Txn& txn, const Digest& digest);           // one version more
Result<bool> release_manifest(Txn& txn, const Digest& digest);  // one less; true: the row is erased
Status erase_manifest(Txn& txn, const Digest& digest, const ManifestRow& row);
// Sets the manifest's place. A manifest without a row gets one with no versions, for rebuilds.
Status place_manifest(Txn& txn, const Digest& digest, const BlobPlace& place, std::uint64_t length);

}  // namespace weft
