// Repairs damaged and missing blobs: writes them into a new pack and points the index there.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "packs/blob_check.h"
#include "repair/repair_pack.h"
#include "store/store_impl.h"

namespace weft {
namespace {

class StoreRepair final : public BlobRepair {
 public:
  StoreRepair(StoreImpl& store, std::unique_ptr<RepairPack> pack) : store_(store), pack_(std::move(pack)) {}

  Status add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where, Progress& progress) override {
    WEFT_CHECK(pack_->add(id, fd, offset, where, progress));
    progress.advance(id.length);
    return {};
  }
  Status commit() override {
    if (pack_->blobs().empty()) return {};
    WEFT_CHECK(pack_->sync());
    return store_.commit_repair(pack_->blobs(), [this] { return pack_->place(); });
  }

 private:
  StoreImpl& store_;
  const std::unique_ptr<RepairPack> pack_;
};

}  // namespace

Result<std::unique_ptr<BlobRepair>> StoreImpl::begin_repair() {
  WEFT_CHECK(parts_.check_writable());
  WEFT_TRY(std::unique_ptr<RepairPack> pack, RepairPack::create(parts_.path));
  return std::unique_ptr<BlobRepair>(std::make_unique<StoreRepair>(*this, std::move(pack)));
}

Status StoreImpl::commit_repair(std::span<const NewBlob> blobs, const std::function<Status()>& place) {
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  WEFT_CHECK(place());
  return replace_damaged(parts_, lock, blobs);
}

// True if the stored blob verifies. False also if the pack is missing or does not list the blob.
Result<bool> StoreImpl::is_intact(const ContentId& id, const BlobPlace& place) {
  auto pack = parts_.packs.open(place.pack);
  if (!pack.ok() && pack.error().code == Errc::not_found) return false;
  if (!pack.ok()) return std::move(pack).error();
  auto toc = parts_.packs.toc(place.pack);
  if (!toc.ok() && (toc.error().code == Errc::not_found || toc.error().code == Errc::corrupt)) return false;
  if (!toc.ok()) return std::move(toc).error();
  const auto entry = std::ranges::find_if(
      toc->entries, [&](const PackEntry& one) { return one.id == id && one.offset == place.offset; });
  if (entry == toc->entries.end()) return false;
  const Status checked = check_blob((*pack)->fd(), pack_path(parts_.path, place.pack), *entry, no_progress());
  if (checked.ok()) return true;
  if (checked.error().code == Errc::corrupt || checked.error().code == Errc::io) return false;
  return checked.error();
}

Result<std::optional<ClusterStore::ForgottenPlace>> StoreImpl::forget_damaged(const ContentId& id) {
  using Forgotten = std::optional<ForgottenPlace>;
  WEFT_CHECK(parts_.cluster.check_clustered());
  std::optional<BlobPlace> place;
  {
    WEFT_TRY(const std::unique_ptr<BlobIndex> index, parts_.blobs.read());
    WEFT_TRY(place, index->find(id));
    WEFT_TRY(const bool held, index->is_held(id));
    if (!place || !held) return Forgotten();
  }
  WEFT_TRY(const bool intact, is_intact(id, *place));
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

Status StoreImpl::put_back(const ContentId& id, const BlobPlace& place) {
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  return parts_.index.write(lock, [&](Txn& txn) -> Status {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, id));
    if (!blob || !blob->row.absent()) return {};
    WEFT_CHECK(place_blob(txn, *blob, place));
    return bump_sequence(txn);
  });
}

}  // namespace weft
