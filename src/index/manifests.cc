#include "index/manifests.h"

#include "base/sha256.h"
#include "index/blobs.h"
#include "index/gc_queue.h"
#include "index/tables.h"

namespace weft {

ContentId packed_manifest_id(const Digest& digest, std::uint64_t length) {
  return {length, tree_root(length, {&digest, 1})};
}

Result<std::optional<ManifestRow>> find_manifest(Txn& txn, const Digest& digest) {
  return find_row<ManifestRow>(txn, Table::manifests, digest_key(digest));
}

Status need_manifest(Txn& txn, const Digest& digest) {
  WEFT_TRY(const std::optional<ManifestRow> found, find_manifest(txn, digest));
  ManifestRow row = found.value_or(ManifestRow());
  ++row.versions;
  return put(txn, Table::manifests, digest_key(digest), row);
}

Result<bool> release_manifest(Txn& txn, const Digest& digest) {
  WEFT_TRY(ManifestRow row, need_row<ManifestRow>(txn, Table::manifests, digest_key(digest)));
  if (row.versions > 1) {
    --row.versions;
    WEFT_CHECK(put(txn, Table::manifests, digest_key(digest), row));
    return false;
  }
  WEFT_CHECK(erase_manifest(txn, digest, row));
  return true;
}

Status erase_manifest(Txn& txn, const Digest& digest, const ManifestRow& row) {
  WEFT_CHECK(count_in_pack(txn, row.place.pack, -1));
  WEFT_CHECK(queue_pack(txn, row.place.pack));
  return txn.erase(Table::manifests, digest_key(digest));
}

Status place_manifest(Txn& txn, const Digest& digest, const BlobPlace& place, std::uint64_t length) {
  WEFT_TRY(const std::optional<ManifestRow> found, find_manifest(txn, digest));
  ManifestRow row = found.value_or(ManifestRow());
  WEFT_CHECK(count_in_pack(txn, row.place.pack, -1));
  WEFT_CHECK(count_in_pack(txn, place.pack, 1));
  WEFT_CHECK(queue_pack(txn, row.place.pack));
  WEFT_CHECK(queue_pack(txn, place.pack));
  row.place = place;
  row.length = length;
  return put(txn, Table::manifests, digest_key(digest), row);
}

}  // namespace weft
