#include "store/cluster/fetch_pack.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "catalog/apply.h"
#include "diskformat/pack_names.h"
#include "index/blobs.h"
#include "index/tables.h"
#include "os/entries.h"
#include "os/file_ops.h"
#include "packs/blob_check.h"

namespace weft {
namespace {

Status check_blob_at(const FetchedBlob& blob, std::uint64_t size, PackId pack) {
  if (blob.id.length == 0 || blob.offset > size || blob.id.length > size - blob.offset)
    return Error{Errc::invalid, fmt::format("pack {}: {} bytes at {} do not lie in its {} bytes", pack_name(pack),
                                            blob.id.length, blob.offset, size)};
  if (root_agrees({blob.id, blob.offset, blob.chunks, 0})) return {};
  return Error{Errc::invalid, fmt::format("pack {}: blob {}: its digests do not agree with its root", pack_name(pack),
                                          to_hex(blob.id.root))};
}

// Returns entries for the absent blobs that versions need. Duplicate content counts once.
Result<std::vector<PackEntry>> missing_of(Txn& txn, std::span<const FetchedBlob> blobs) {
  std::vector<PackEntry> entries;
  for (const FetchedBlob& blob : blobs) {
    WEFT_TRY(std::optional<FoundBlob> found, find_blob(txn, blob.id));
    auto same = [&blob](const PackEntry& entry) { return entry.id == blob.id; };
    if (!found || !found->row.absent() || std::any_of(entries.begin(), entries.end(), same)) continue;
    entries.push_back({blob.id, blob.offset, blob.chunks, 0});
  }
  std::ranges::sort(entries, {}, &PackEntry::offset);
  return entries;
}

Status merge(PackToc& toc, const std::vector<PackEntry>& entries) {
  std::vector<PackEntry> all;
  std::ranges::merge(toc.entries, entries, std::back_inserter(all), {}, &PackEntry::offset, &PackEntry::offset);
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].offset < all[i - 1].offset + all[i - 1].id.length)
      return Error{Errc::invalid, fmt::format("pack {}: two blobs overlap at {}", pack_name(toc.pack), all[i].offset)};
  toc.entries = std::move(all);
  return {};
}

}  // namespace

// Opens a new pack below tmp/, empty or made of `file`.
Result<std::unique_ptr<CachedPackWriter>> CachedPackWriter::open_in(StoreParts& parts, const SafePath* file) {
  WEFT_TRY(auto temp, TempArea::make(parts.path));
  const PackId id = new_pack_id(PackKind::blobs);
  const SafePath path = temp->path() / (pack_name(id) + ".pack");
  std::unique_ptr<CachedPackWriter> pack(new CachedPackWriter(parts, id, std::move(temp)));
  if (file != nullptr) WEFT_CHECK(rename_new(*file, path));
  WEFT_TRY(pack->fd_, open_file(path, file == nullptr ? O_RDWR | O_CREAT | O_EXCL : O_RDWR));
  WEFT_CHECK(lock_fd(pack->fd_.get(), LockKind::exclusive, LockWait::no, path));
  return pack;
}

Result<std::unique_ptr<FetchPack>> CachedPackWriter::create(StoreParts& parts, std::uint64_t size) {
  WEFT_TRY(auto pack, open_in(parts, nullptr));
  pack->size_ = size;
  WEFT_CHECK(resize_file(pack->fd_.get(), size, fmt::format("a pack of {} bytes", size)));
  return std::unique_ptr<FetchPack>(std::move(pack));
}

Result<std::unique_ptr<FetchPack>> CachedPackWriter::take(StoreParts& parts, const SafePath& file) {
  WEFT_TRY(const struct stat st, stat_file(file));
  if (!S_ISREG(st.st_mode)) return Error{Errc::not_found, fmt::format("{}: not a regular file", file)};
  WEFT_TRY(auto pack, open_in(parts, &file));
  pack->size_ = static_cast<std::uint64_t>(st.st_size);
  WEFT_CHECK(give_to_owner(pack->fd_.get(), parts.path));
  return std::unique_ptr<FetchPack>(std::move(pack));
}

Result<std::unique_ptr<FetchPack>> CachedPackWriter::resume(StoreParts& parts, PackId id) {
  std::unique_ptr<CachedPackWriter> pack(new CachedPackWriter(parts, id, nullptr));
  const SafePath path = pack_path(parts.path, id);
  WEFT_TRY(pack->fd_, open_file(path, O_RDWR));
  WEFT_CHECK(lock_fd(pack->fd_.get(), LockKind::exclusive, LockWait::no, path));
  // gc and eviction hold the writer lock from their check of the pack's lock until the pack is deleted.
  WEFT_TRY(const WriterLock lock_held, parts.index.lock());
  WEFT_TRY(struct stat st, stat_fd(pack->fd_.get(), path));
  if (st.st_nlink == 0) return Error{Errc::not_found, fmt::format("{}: it was just evicted", path)};
  WEFT_TRY(PackToc toc, read_toc_of(parts.path, id));
  if (!toc.cached) return Error{Errc::invalid, fmt::format("{}: it is no cached pack", path)};
  WEFT_CHECK(pack->check_whole(toc));
  pack->size_ = toc.size;
  return std::unique_ptr<FetchPack>(std::move(pack));
}

// Errc::invalid if the index does not name all listed blobs. A reader may have their bytes open, so a fetch must not
// write the same ranges again.
Status CachedPackWriter::check_whole(const PackToc& toc) const {
  WEFT_TRY(Txn txn, parts_.index.read());
  for (const PackEntry& entry : toc.entries) {
    WEFT_TRY(const std::optional<FoundBlob> found, find_blob(txn, entry.id));
    if (!found || found->row.absent() || found->row.place != BlobPlace{id_, entry.offset})
      return Error{Errc::invalid, fmt::format("pack {}: the index does not name all that it lists", pack_name(id_))};
  }
  return {};
}

// Reads the current .toc: a publish may have promoted the pack.
Result<PackToc> CachedPackWriter::listed() const {
  if (temp_) return PackToc{id_, size_, {}, true};
  return read_toc_of(parts_.path, id_);
}

Status CachedPackWriter::put_in_place(const PackToc& toc) {
  const SafePath to = toc_path(parts_.path, id_);
  if (!temp_) {
    WEFT_CHECK(replace_toc(to, toc));
    return sync_directory(parts_.path / "packs");
  }
  const SafePath from = temp_->path() / pack_name(id_);
  WEFT_CHECK(write_toc(from + ".toc", toc));
  WEFT_CHECK(rename_new(from + ".toc", to));
  WEFT_CHECK(rename_new(from + ".pack", pack_path(parts_.path, id_)));
  temp_.reset();
  return sync_directory(parts_.path / "packs");
}

Result<std::size_t> CachedPackWriter::add(std::span<const FetchedBlob> blobs) {
  for (const FetchedBlob& blob : blobs) WEFT_CHECK(check_blob_at(blob, size_, id_));
  const MutexLock one_at_a_time(mutex_);
  WEFT_CHECK(sync_file(fd_.get(), pack_name(id_)));
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  std::vector<PackEntry> entries;
  {
    WEFT_TRY(Txn txn, parts_.index.read());
    WEFT_TRY(entries, missing_of(txn, blobs));
  }
  if (entries.empty()) return std::size_t{0};
  for (PackEntry& entry : entries) entry.hint = hint_of(fd_.get(), entry.offset, entry.id.length);
  WEFT_TRY(PackToc toc, listed());
  WEFT_CHECK(merge(toc, entries));
  WEFT_CHECK(put_in_place(toc));
  Status status = parts_.index.write(lock, [&](Txn& txn) -> Status {
    for (const PackEntry& entry : entries) {
      auto added = add_blob(txn, entry.id, {id_, entry.offset});
      if (!added.ok()) return std::move(added).error();
      WEFT_CHECK(put_hint(txn, entry.id, entry.hint));
    }
    if (toc.cached) WEFT_CHECK(put_note(txn, kCached, id_));
    return bump_sequence(txn);
  });
  WEFT_CHECK(std::move(status));
  return entries.size();
}

}  // namespace weft
