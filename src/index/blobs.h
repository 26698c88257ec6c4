// Blobs in the index: where the bytes of each lie, which versions hold it, and how many blobs each pack holds.
//
// A blob gets a number when a version first holds it, and the blobs of one publish get numbers that follow one another.
// The journal has the numbers of each version's blobs, so that a rebuilt index gives them the same ones. `holders` has
// a row for each file of a version and each 64 numbers of which the file holds some, with a bit for each number. So a
// version that shares a hundred tensors with another one writes two or three rows that stand together, and not a
// hundred rows all over the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diskformat/keys.h"
#include "diskformat/rows.h"
#include "index/env.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// A blob as the index has it.
struct FoundBlob {
  std::string key;
  BlobRow row;
};
Result<std::optional<FoundBlob>> find_blob(Txn& txn, const ContentId& id);

// Makes the row of a blob that has none, without a number. The caller says that it is dead, or makes it held.
Result<FoundBlob> make_blob(Txn& txn, const ContentId& id, const BlobPlace& place);
// Its bytes lie there from now on; pack 0: nowhere on this node.
Status place_blob(Txn& txn, FoundBlob blob, const BlobPlace& place);
Status number_blob(Txn& txn, FoundBlob& blob, std::uint64_t number);
Status erase_blob(Txn& txn, const FoundBlob& blob);  // which nobody holds

// So many rows more (or fewer) name this pack; pack 0: nothing.
Status count_in_pack(Txn& txn, PackId pack, std::int64_t change);
// Blobs, or manifests, whose rows name this pack. A pack whose table of contents shows fewer has lost rows: gc leaves
// it alone.
Result<std::uint64_t> blobs_in_pack(Txn& txn, PackId pack);

// Which files of which versions hold a blob: live versions, in the order of their ids.
Result<std::optional<Holder>> first_holder(Txn& txn, const FoundBlob& blob);
// The first that are not below `from`, in order: what the first `rows_max` rows of the blob's group say. `next` begins
// the rest; nothing: there is no more.
struct HolderPage {
  std::vector<Holder> holders;
  std::optional<Holder> next;
};
Result<HolderPage> holders_from(Txn& txn, const FoundBlob& blob, const Holder& from, std::size_t rows_max);
// In order; of more than 2 × `count_max` only so many from each end.
Result<std::vector<Holder>> some_holders(Txn& txn, const FoundBlob& blob, std::size_t count_max);

using BlobNumbers = std::set<std::uint64_t>;
Status add_holder(Txn& txn, const Holder& holder, const BlobNumbers& blobs);
Status remove_holder(Txn& txn, const Holder& holder, const BlobNumbers& blobs);

// A hint finds known content before all of it is read: XXH3-64 of its first MiB, of blobs that are larger. It is no
// part of an identity. A hint that is missing, stale or of other content costs time and nothing else. 0 is no hint.
Status put_hint(Txn& txn, const ContentId& id, std::uint64_t hint);
Status erase_hint(Txn& txn, const ContentId& id, std::uint64_t hint);  // unless it leads to other content
Result<std::optional<ContentId>> find_hinted(Txn& txn, std::uint64_t length, std::uint64_t hint);

}  // namespace weft
