// The blobs in the index: the place of each, the versions that hold it, and the number of blobs in each pack.
//
// A blob gets a number when a version first holds it. The blobs of one publish get consecutive numbers. The journal
// records the numbers of each version's blobs, so a rebuilt index assigns the same ones. The table `holders` has one
// row per file of a version and group of 64 numbers, with a bit for each number that the file holds. So a version that
// shares a hundred tensors with another one writes two or three adjacent rows instead of a hundred scattered ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/keys.h"
#include "diskformat/rows.h"
#include "index/env.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/snapshot.h"
#include "weft/store_rows.h"

namespace weft {

// A blob's key and row in the index.
struct FoundBlob {
  std::string key;
  BlobRow row;
};
Result<std::optional<FoundBlob>> find_blob(Txn& txn, const ContentId& id);

// Adds the row of a new blob, without a number. The caller must mark the blob dead or add a holder.
Result<FoundBlob> make_blob(Txn& txn, const ContentId& id, const BlobPlace& place);
// Changes the blob's place; pack 0: it is not local any more.
Status place_blob(Txn& txn, FoundBlob blob, const BlobPlace& place);
Status number_blob(Txn& txn, FoundBlob& blob, std::uint64_t number);
Status erase_blob(Txn& txn, const FoundBlob& blob);  // the blob must have no holder

// Adds `change` to the number of rows that name this pack. No effect for pack 0.
Status count_in_pack(Txn& txn, PackId pack, std::int64_t change);
// Returns how many rows of blobs or manifests name this pack. If the pack's .toc lists fewer of them, rows are lost,
// and gc skips the pack.
Result<std::uint64_t> blobs_in_pack(Txn& txn, PackId pack);

// Holders of a blob: files of versions, in the order of version ids. They include removed large versions that still
// give back their content (release.h).
Result<std::optional<Holder>> first_holder(Txn& txn, const FoundBlob& blob);
// Returns a page of a blob's holders, in order, out of `rows_max` rows of the blob's group.
Result<Page<Holder>> holders_of(Txn& txn, const FoundBlob& blob, std::string_view from, std::size_t rows_max);
// Returns the first and the last `count_max` holders, in order; all of them if there are no more than twice as many.
Result<std::vector<Holder>> some_holders(Txn& txn, const FoundBlob& blob, std::size_t count_max);

using BlobNumbers = std::set<std::uint64_t>;
Status add_holder(Txn& txn, const Holder& holder, const BlobNumbers& blobs);
Status remove_holder(Txn& txn, const Holder& holder, const BlobNumbers& blobs);

// A hint finds known content before all of it was read. It is the XXH3-64 of the first MiB of a larger blob, and no
// part of an identity. A missing, stale or wrong hint only costs time. 0 is no hint.
Status put_hint(Txn& txn, const ContentId& id, std::uint64_t hint);
Status erase_hint(Txn& txn, const ContentId& id, std::uint64_t hint);  // unless the hint leads to other content
Result<std::optional<ContentId>> find_hinted(Txn& txn, std::uint64_t length, std::uint64_t hint);

}  // namespace weft
