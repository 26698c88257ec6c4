// Repair of damaged and missing blobs: their bytes go into a new pack, and the index names them there.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/sha256.h"
#include "base/sys.h"
#include "store/blob_check.h"
#include "store/hash.h"
#include "store/notes.h"
#include "store/pack_file.h"
#include "store/store_impl.h"
#include "store/temp_area.h"

namespace weft {
namespace {

constexpr std::uint64_t kStep = 4 * kDigestChunk;

class PackRepair final : public BlobRepair {
 public:
  PackRepair(StoreImpl& store, std::unique_ptr<TempArea> temp, std::unique_ptr<PackWriter> pack)
      : store_(store), temp_(std::move(temp)), pack_(std::move(pack)) {}

  Status add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where, Progress& progress) override;
  Status commit() override;

 private:
  Result<PackEntry> copy(const ContentId& id, int fd, std::uint64_t offset, std::uint64_t to, std::string_view where,
                         const Progress& progress);
  StoreImpl& store_;
  const std::unique_ptr<TempArea> temp_;
  const std::unique_ptr<PackWriter> pack_;
  std::vector<NewBlob> blobs_;
};

Status PackRepair::add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where, Progress& progress) {
  if (std::ranges::find(blobs_, id, &NewBlob::id) != blobs_.end()) return {};
  const std::uint64_t to = pack_->reserve(id.length, offset);
  auto entry = copy(id, fd, offset, to, where, progress);
  if (!entry.ok()) {
    pack_->give_back(to);
    return std::move(entry).error();
  }
  blobs_.push_back({id, {pack_->id(), to}, entry->hint, true});
  pack_->list(*std::move(entry));
  progress.advance(id.length);
  return {};
}

// The bytes are hashed in the buffer that they are written from.
Result<PackEntry> PackRepair::copy(const ContentId& id, int fd, std::uint64_t offset, std::uint64_t to,
                                   std::string_view where, const Progress& progress) {
  PackEntry entry{id, to, std::vector<Digest>(chunk_count(id.length)), 0};
  std::vector<std::byte> buffer(std::min(id.length, kStep));
  for (std::uint64_t done = 0; done < id.length;) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: repair stopped", store_.path())};
    const auto piece = std::span(buffer).first(std::min(kStep, id.length - done));
    WEFT_CHECK(read_exact(fd, offset + done, piece, where));
    sha256_chunks(piece, std::span(entry.chunks).subspan(done / kDigestChunk, chunk_count(piece.size())));
    if (done == 0 && id.length > kDigestChunk) entry.hint = xxh3_64(piece.first(kDigestChunk));
    WEFT_CHECK(pack_->write(to + done, piece));
    done += piece.size();
  }
  if (root_agrees(entry)) return entry;
  return Error{Errc::corrupt, fmt::format("{}: expected the {} bytes with digest {} at {}, got others", where,
                                          id.length, to_hex(id.root), offset)};
}

Status PackRepair::commit() {
  if (blobs_.empty()) return {};
  WEFT_CHECK(pack_->begin_sync());
  WEFT_CHECK(pack_->sync());
  return store_.commit_repair(blobs_, [this]() -> Status {
    WEFT_CHECK(pack_->publish());
    return sync_directory(store_.directory() / "packs");
  });
}

}  // namespace

Result<std::unique_ptr<BlobRepair>> StoreImpl::begin_repair() {
  if (!options_.write) return Error{Errc::read_only, fmt::format("{}: opened for reading", path_)};
  WEFT_TRY(std::unique_ptr<TempArea> temp, TempArea::make(path_));
  WEFT_TRY(std::unique_ptr<PackWriter> pack, PackWriter::create(path_, temp->path()));
  return std::unique_ptr<BlobRepair>(std::make_unique<PackRepair>(*this, std::move(temp), std::move(pack)));
}

Status StoreImpl::commit_repair(std::span<const NewBlob> blobs, const std::function<Status()>& place) {
  WEFT_TRY(const WriterLock lock, lock_writer());
  WEFT_CHECK(place());
  return replace_damaged(lock, blobs);
}

// False also if the pack is gone or does not list the blob there.
Result<bool> StoreImpl::is_intact(const ContentId& id, const BlobPlace& place) {
  auto pack = packs_.open(place.pack);
  if (!pack.ok() && pack.error().code == Errc::not_found) return false;
  if (!pack.ok()) return std::move(pack).error();
  auto toc = packs_.toc(place.pack);
  if (!toc.ok() && (toc.error().code == Errc::not_found || toc.error().code == Errc::corrupt)) return false;
  if (!toc.ok()) return std::move(toc).error();
  const auto entry = std::ranges::find_if(
      toc->entries, [&](const PackEntry& one) { return one.id == id && one.offset == place.offset; });
  if (entry == toc->entries.end()) return false;
  const Status checked = check_blob((*pack)->fd(), pack_path(path_, place.pack), *entry, no_progress());
  if (checked.ok()) return true;
  if (checked.error().code == Errc::corrupt || checked.error().code == Errc::io) return false;
  return checked.error();
}

Result<std::optional<ClusterStore::ForgottenPlace>> StoreImpl::forget_damaged(const ContentId& id) {
  using Forgotten = std::optional<ForgottenPlace>;
  WEFT_CHECK(check_clustered());
  std::optional<BlobPlace> place;
  {
    WEFT_TRY(const std::unique_ptr<BlobIndex> index, read());
    WEFT_TRY(place, index->find(id));
    WEFT_TRY(const bool held, index->is_held(id));
    if (!place || !held) return Forgotten();
  }
  WEFT_TRY(const bool intact, is_intact(id, *place));
  if (intact) return Forgotten();
  WEFT_TRY(const WriterLock lock, lock_writer());
  ForgottenPlace forgotten{*place, false};
  bool moved = false;
  Status written = env_->write(lock, [&](Txn& txn) -> Status {
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
  WEFT_TRY(const WriterLock lock, lock_writer());
  return env_->write(lock, [&](Txn& txn) -> Status {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, id));
    if (!blob || !blob->row.absent()) return {};
    WEFT_CHECK(put(txn, Table::blobs, blob->key, BlobRow{place}));
    return bump_sequence(txn);
  });
}

}  // namespace weft
