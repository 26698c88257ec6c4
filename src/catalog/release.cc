#include "catalog/release.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "catalog/content.h"
#include "catalog/content_steps.h"
#include "index/blobs.h"
#include "index/gc_queue.h"
#include "index/manifests.h"
#include "index/tables.h"
#include "index/version_life.h"

namespace weft {
namespace {

// Handles a blob without holders: deletes the row of an absent blob, marks a local blob dead and queues its pack for
// gc.
Status bury(Txn& txn, const FoundBlob& blob) {
  if (blob.row.absent()) return erase_blob(txn, blob);
  WEFT_CHECK(queue_pack(txn, blob.row.place.pack));
  return mark_dead(txn, blob.key);
}

Status add_links(Txn& txn, Ino ino, std::uint64_t links) {
  WEFT_TRY(InodeRow view, need_row<InodeRow>(txn, Table::inodes, key_of(ino)));
  view.view_links += links;
  return put(txn, Table::inodes, key_of(ino), view);
}

}  // namespace

ContentRelease::ContentRelease(VersionId version, const LocalRow& local, const VersionContent& content)
    : version_(version), references_(content), files_(content.files.size()) {
  for (const std::uint32_t view : references_.distinct_views())
    views_.emplace_back(local.view_inos[view], references_.links(view));
  std::sort(views_.begin(), views_.end());
}

// The next holder of a blob inherits the bytes that the version owned; without one the blob is buried.
Status let_go(Txn& txn, VersionId version, const ContentReferences& references, std::span<const std::uint32_t> places) {
  struct Found {
    FoundBlob blob;
    bool owned = false;  // its first holder is this version
  };
  std::vector<Found> found;
  std::map<std::uint32_t, BlobNumbers> held;
  for (const std::uint32_t place : places) {
    WEFT_TRY(auto blob, find_blob(txn, references.blob(place)));
    if (!blob) continue;  // the store has lost the blob
    WEFT_TRY(const std::optional<Holder> owner, first_holder(txn, *blob));
    if (!owner) return damaged(txn, fmt::format("version {} is no holder of its own blob", version));
    for (const BlobReference& reference : references.of_blob(place)) held[reference.file].insert(blob->row.number);
    found.push_back({*std::move(blob), owner->first == version});
  }
  for (const auto& [file, numbers] : held) WEFT_CHECK(remove_holder(txn, {version, file}, numbers));
  for (const auto& [blob, owned] : found) {
    WEFT_TRY(const std::optional<Holder> heir, first_holder(txn, blob));
    if (!heir) WEFT_CHECK(bury(txn, blob));
    if (heir && owned) WEFT_CHECK(add_owned(txn, *heir, blob_length(blob.key)));
  }
  return {};
}

Status ContentRelease::release(Txn& txn, std::uint64_t from, std::uint64_t end) const {
  const std::size_t blobs = references_.blob_count();
  WEFT_CHECK(let_go(txn, version_, references_, numbers_of(blobs, 0, from, end)));
  for (const std::uint32_t file : numbers_of(files_, blobs, from, end))
    WEFT_CHECK(txn.erase(Table::owned, file_key(version_, file)));
  for (const auto& [ino, links] : steps_of(views_, blobs + files_, from, end))
    WEFT_CHECK(remove_links(txn, ino, links));
  for (const auto& [ino, links] : steps_of(views_, held_steps(), from, end)) WEFT_CHECK(release_view(txn, ino));
  return {};
}

Status ContentRelease::take_back(Txn& txn, std::uint64_t end, std::vector<std::uint64_t> numbers,
                                 const PublishInput& input) const {
  const std::size_t blobs = references_.blob_count();
  if (numbers.size() != blobs)
    return damaged(txn, fmt::format("version {} has {} blobs and numbers of {}", version_, blobs, numbers.size()));
  std::map<std::uint32_t, std::uint64_t> owned;
  WEFT_CHECK(take_blobs(txn, version_, references_, numbers_of(blobs, 0, 0, end), input, numbers, owned));
  // The row of another file still has the bytes of the blobs that were released.
  for (const std::uint32_t file : numbers_of(files_, blobs, 0, end))
    WEFT_CHECK(put_owned(txn, {version_, file}, owned[file]));
  for (const auto& [ino, links] : steps_of(views_, blobs + files_, 0, end)) WEFT_CHECK(add_links(txn, ino, links));
  return {};
}

Result<bool> forget_version(Txn& txn, const VersionRow& version, const LocalRow& local) {
  WEFT_CHECK(enter(txn, version.id, VersionState::absent));
  WEFT_CHECK(txn.erase(Table::inodes, key_of(local.ino_base)));
  WEFT_CHECK(txn.erase(Table::locals, key_of(version.id)));
  return release_manifest(txn, version.manifest);
}

Status remove_links(Txn& txn, Ino ino, std::uint64_t links) {
  WEFT_TRY(InodeRow view, need_row<InodeRow>(txn, Table::inodes, key_of(ino)));
  if (view.view_links < links) return damaged(txn, fmt::format("view {} has fewer links than names", ino));
  view.view_links -= links;
  return put(txn, Table::inodes, key_of(ino), view);
}

Status release_view(Txn& txn, Ino ino) {
  WEFT_TRY(std::optional<InodeRow> inode, find_row<InodeRow>(txn, Table::inodes, key_of(ino)));
  if (!inode) return {};  // the version's content could not be read
  if (inode->view_versions > 1) {
    --inode->view_versions;
    return put(txn, Table::inodes, key_of(ino), *inode);
  }
  WEFT_CHECK(txn.erase(Table::views, view_key(inode->view)));
  return txn.erase(Table::inodes, key_of(ino));
}

}  // namespace weft
