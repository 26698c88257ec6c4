#include "store/cluster/store_cache.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "catalog/apply.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "index/blobs.h"
#include "index/pages.h"
#include "index/tables.h"
#include "packs/blob_check.h"
#include "packs/packs.h"
#include "store/cluster/fetch_pack.h"
#include "store/publishing/promotions.h"

namespace weft {
namespace {

Status take_out(Txn& txn, const PackToc& toc) {
  for (const PackEntry& entry : toc.entries) {
    WEFT_TRY(std::optional<FoundBlob> blob, find_blob(txn, entry.id));
    if (!blob || blob->row.place.pack != toc.pack) continue;
    WEFT_CHECK(forget_place(txn, *blob));
  }
  WEFT_CHECK(erase_note(txn, kCached, toc.pack));
  return bump_sequence(txn);
}

Result<bool> is_needed_by_open(StoreParts& parts, const PackToc& toc, UnreapedContent& open) {
  WEFT_TRY(const std::unique_ptr<BlobIndex> index, parts.blobs.read());
  WEFT_CHECK(open.refresh(*index));
  return std::ranges::any_of(toc.entries, [&](const PackEntry& entry) { return open.has(entry.id); });
}

// True if the stored blob verifies. False also if the pack is missing or does not list the blob.
Result<bool> is_intact(StoreParts& parts, const ContentId& id, const BlobPlace& place) {
  WEFT_TRY(auto pack, if_there(parts.packs.open(place.pack)));
  if (!pack) return false;
  auto toc = parts.packs.toc(place.pack);
  if (!toc.ok() && (toc.error().code == Errc::not_found || toc.error().code == Errc::corrupt)) return false;
  if (!toc.ok()) return std::move(toc).error();
  const PackEntry* entry = find_entry(*toc, id, place.offset);
  if (entry == nullptr) return false;
  const Status checked = check_blob((*pack)->fd(), pack_path(parts.path, place.pack), *entry, no_progress());
  if (checked.ok()) return true;
  if (checked.error().code == Errc::corrupt || checked.error().code == Errc::io) return false;
  return checked.error();
}

}  // namespace

// Adds the packs in which these blobs are now.
Status StoreCache::add_packs_of(std::span<const ContentId> blobs, std::set<PackId>& packs) {
  RenewedTxn now(parts_.index.env());
  for (const ContentId& id : blobs) {
    WEFT_TRY(Txn * txn, now.get());
    WEFT_TRY(std::optional<FoundBlob> blob, find_blob(*txn, id));
    if (blob && !blob->row.absent()) packs.insert(blob->row.place.pack);
  }
  return {};
}

// Returns the blobs of a live version; none for a bare one.
Result<std::vector<ContentId>> StoreCache::blobs_of_live(VersionId id) {
  {
    WEFT_TRY(Txn txn, parts_.index.read());
    WEFT_TRY(std::optional<VersionRow> version, find_row<VersionRow>(txn, Table::versions, key_of(id)));
    WEFT_TRY(bool incomplete, is_incomplete(txn, id));
    if (!version || version->removed || incomplete) return std::vector<ContentId>();
  }
  return parts_.extents_of(id);
}

// Asks the index only after a commit, and decodes the manifest of a version only once.
Result<std::set<PackId>> StoreCache::pinned_packs() {
  const MutexLock lock(mutex_);
  WEFT_TRY(const IndexState state, parts_.index.env().state());
  if (pinned_at_ == state) return pinned_;
  pinned_at_.reset();
  WEFT_TRY(const std::vector<VersionId> versions, all_noted(parts_.index.env(), kPinned));
  std::erase_if(blobs_of_pinned_, [&](const auto& one) { return !std::ranges::binary_search(versions, one.first); });
  pinned_.clear();
  for (const VersionId version : versions) {
    auto& blobs = blobs_of_pinned_[version];
    if (blobs.empty()) {
      WEFT_TRY(blobs, blobs_of_live(version));
    }
    WEFT_CHECK(add_packs_of(blobs, pinned_));
  }
  pinned_at_ = state;
  return pinned_;
}

Result<std::vector<CachedPack>> StoreCache::cached_packs() {
  WEFT_TRY(const std::vector<PackId> ids, all_noted(parts_.index.env(), kCached));
  WEFT_TRY(std::set<PackId> pinned, pinned_packs());
  return packs_by_use(packs_dir(parts_.path), ids, pinned);
}

// False if the pack stays: it is being filled, or an open removed version needs its bytes, which no peer could send
// again. The index changes before the files are deleted, all under the writer lock. A fetch that resumes a pack checks
// both under that lock.
Result<bool> StoreCache::evict_pack(PackId pack, UnreapedContent& open) {
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  if (is_being_filled(parts_.packs, pack)) return false;
  WEFT_TRY(auto toc, if_there(parts_.packs.toc(pack)));
  if (!toc) return true;  // gc has deleted it
  if (!toc->cached) {     // promoted by a publish that died before the index recorded it
    WEFT_CHECK(parts_.index.write(lock, [pack](Txn& txn) { return erase_note(txn, kCached, pack); }));
    return false;
  }
  WEFT_TRY(const bool needed, is_needed_by_open(parts_, *toc, open));
  if (needed) return false;
  WEFT_CHECK(parts_.index.write(lock, [&toc](Txn& txn) { return take_out(txn, *toc); }));
  WEFT_CHECK(remove_pack(parts_.packs, pack));
  return true;
}

Result<EvictReport> StoreCache::evict(const EvictOptions& options) {
  WEFT_TRY(std::vector<CachedPack> packs, cached_packs());
  std::set<PackId> wanted;
  if (options.version) {
    WEFT_TRY(const std::vector<ContentId> blobs, blobs_of_live(*options.version));
    WEFT_CHECK(add_packs_of(blobs, wanted));
  }
  // If a removed version is closed during the eviction, its packs may stay until the next one.
  UnreapedContent open([this](VersionId version) { return parts_.extents_of_open(version); });
  EvictReport report;
  for (const CachedPack& pack : packs) report.kept_bytes += pack.disk_bytes;
  for (const CachedPack& pack : packs) {
    if (pack.pinned) report.pinned_bytes += pack.disk_bytes;
    if (pack.pinned || (options.version && !wanted.contains(pack.id))) continue;
    if (report.kept_bytes <= options.disk_bytes_max) continue;
    bool gone = true;
    if (!options.dry_run) {
      WEFT_TRY(gone, evict_pack(pack.id, open));
      log_debug(LogCategory::store, "cached pack {} of {} bytes {}", pack_name(pack.id), pack.disk_bytes,
                gone ? "evicted" : "stays: it is being filled, or an open file needs it");
    }
    if (!gone) report.busy_bytes += pack.disk_bytes;
    if (!gone) continue;
    ++report.packs;
    report.disk_bytes += pack.disk_bytes;
    report.kept_bytes -= pack.disk_bytes;
  }
  return report;
}

Result<std::unique_ptr<FetchPack>> StoreCache::fetch_pack(std::uint64_t size) {
  WEFT_CHECK(parts_.cluster.check_clustered());
  return CachedPackWriter::create(parts_, size);
}

Result<std::unique_ptr<FetchPack>> StoreCache::take_file(const SafePath& file) {
  WEFT_CHECK(parts_.cluster.check_clustered());
  return CachedPackWriter::take(parts_, file);
}

Result<std::unique_ptr<FetchPack>> StoreCache::resume_fetch(PackId pack) {
  WEFT_CHECK(parts_.cluster.check_clustered());
  return CachedPackWriter::resume(parts_, pack);
}

Result<bool> StoreCache::make_evictable(PackId pack) {
  WEFT_CHECK(parts_.cluster.check_clustered());
  if (kind_of_pack(pack) == PackKind::manifests) return false;
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  if (parts_.reliances.is_needed(pack)) return false;
  WEFT_CHECK(make_cached(parts_, lock, {pack}));
  return true;
}

Result<std::optional<ForgottenPlace>> StoreCache::forget_damaged(const ContentId& id) {
  using Forgotten = std::optional<ForgottenPlace>;
  WEFT_CHECK(parts_.cluster.check_clustered());
  std::optional<BlobPlace> place;
  {
    WEFT_TRY(const std::unique_ptr<BlobIndex> index, parts_.blobs.read());
    WEFT_TRY(place, index->find(id));
    WEFT_TRY(const bool held, index->is_held(id));
    if (!place || !held) return Forgotten();
  }
  WEFT_TRY(const bool intact, is_intact(parts_, id, *place));
  if (intact) return Forgotten();
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  ForgottenPlace forgotten{*place, false};
  bool moved = false;
  Status written = parts_.index.write(lock, [&](Txn& txn) -> Status {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, id));
    moved = !blob || blob->row.place != *place;
    if (moved) return {};
    WEFT_TRY(forgotten.cached, has_note(txn, kCached, place->pack));
    WEFT_CHECK(forget_place(txn, *blob));
    return bump_sequence(txn);
  });
  WEFT_CHECK(std::move(written));
  return moved ? Forgotten() : Forgotten(forgotten);
}

Status StoreCache::put_back(const ContentId& id, const BlobPlace& place) {
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  return parts_.index.write(lock, [&](Txn& txn) -> Status {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, id));
    if (!blob || !blob->row.absent()) return {};
    WEFT_CHECK(place_blob(txn, *blob, place));
    return bump_sequence(txn);
  });
}

}  // namespace weft
