// Manifests in the index: how many versions need each of them, and where it lies if it is in a pack. A manifest without
// a row is one that no version needs.
#pragma once

#include <optional>

#include "diskformat/rows.h"
#include "index/env.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The content id that a manifest has in a pack.
ContentId packed_manifest_id(const Digest& digest, std::uint64_t length);

Result<std::optional<ManifestRow>> find_manifest(Txn& txn, const Digest& digest);
Status need_manifest(Txn& txn, const Digest& digest);           // one version more needs it
Result<bool> release_manifest(Txn& txn, const Digest& digest);  // one less; true: none is left, and the row goes
Status erase_manifest(Txn& txn, const Digest& digest, const ManifestRow& row);
// It lies there from now on. A manifest without a row gets one that no version needs yet, as a rebuild makes them.
Status place_manifest(Txn& txn, const Digest& digest, const BlobPlace& place, std::uint64_t length);

}  // namespace weft
