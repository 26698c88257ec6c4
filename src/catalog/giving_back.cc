#include "catalog/giving_back.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include <fmt/core.h>

#include "base/limits.h"
#include "catalog/apply.h"
#include "catalog/content.h"
#include "catalog/plan.h"
#include "index/gc_queue.h"

namespace weft {
namespace {

// The steps of one kind among those from `from` to `end`, where so many of other kinds come before them.
template <class Step>
std::span<const Step> part(const std::vector<Step>& steps, std::size_t before, std::uint64_t from, std::uint64_t end) {
  const auto at = [&](std::uint64_t step) {
    return std::min<std::uint64_t>(step - std::min<std::uint64_t>(step, before), steps.size());
  };
  return std::span(steps).subspan(at(from), at(end) - at(from));
}

// A blob that is not here is known only as long as somebody needs it.
Status bury(Txn& txn, const FoundBlob& blob) {
  if (blob.row.absent()) return erase_blob(txn, blob);
  WEFT_CHECK(queue_pack(txn, blob.row.place.pack));
  return mark_dead(txn, blob.key);
}

Status remove_links(Txn& txn, Ino ino, std::uint64_t links) {
  WEFT_TRY(InodeRow view, need_row<InodeRow>(txn, Table::inodes, key_of(ino)));
  if (view.view_links < links) return damaged(txn, fmt::format("view {} has fewer links than names", ino));
  view.view_links -= links;
  return put(txn, Table::inodes, key_of(ino), view);
}

}  // namespace

Result<std::optional<std::uint64_t>> steps_given_back(Txn& txn, VersionId version) {
  WEFT_TRY(const auto row, find_row<NumberRow>(txn, Table::meta, note_key(kGivingBack, version)));
  return row ? std::optional(row->value) : std::nullopt;
}

Status note_given_back(Txn& txn, VersionId version, std::uint64_t steps) {
  return put(txn, Table::meta, note_key(kGivingBack, version), NumberRow{steps});
}

GivingBack::GivingBack(VersionId version, const LocalRow& local, const VersionContent& content)
    : version_(version), files_(content.files.size()) {
  for (const BlobUse& use : blob_uses(content)) {
    if (use.place == blobs_.size()) blobs_.push_back({*use.blob, {}});
    blobs_.back().files.push_back(use.file);
  }
  std::map<Ino, std::uint64_t> views;
  for (std::size_t i = 0; i < content.views.size(); ++i) views[local.view_inos[i]] += kLinksOfView;
  views_.assign(views.begin(), views.end());
}

// The next holder inherits what the version owned; a blob without one is dead.
Status GivingBack::let_go(Txn& txn, std::span<const Blob> blobs) const {
  struct Found {
    FoundBlob blob;
    bool owned = false;  // its first holder is this version
  };
  std::vector<Found> found;
  std::map<std::uint32_t, BlobNumbers> held;
  for (const auto& [id, files] : blobs) {
    WEFT_TRY(auto blob, find_blob(txn, id));
    if (!blob) continue;  // of a store that lost it
    WEFT_TRY(const std::optional<Holder> owner, first_holder(txn, *blob));
    if (!owner) return damaged(txn, fmt::format("version {} is no holder of its own blob", version_));
    for (const std::uint32_t file : files) held[file].insert(blob->row.number);
    found.push_back({*std::move(blob), owner->first == version_});
  }
  for (const auto& [file, numbers] : held) WEFT_CHECK(remove_holder(txn, {version_, file}, numbers));
  for (const auto& [blob, owned] : found) {
    WEFT_TRY(const std::optional<Holder> heir, first_holder(txn, blob));
    if (!heir) WEFT_CHECK(bury(txn, blob));
    if (heir && owned) WEFT_CHECK(add_owned(txn, *heir, blob_length(blob.key)));
  }
  return {};
}

Status GivingBack::take(Txn& txn, std::uint64_t from, std::uint64_t end) const {
  WEFT_CHECK(let_go(txn, part(blobs_, 0, from, end)));
  for (std::uint64_t file = 0; file < files_; ++file)
    if (const std::uint64_t step = blobs_.size() + file; from <= step && step < end)
      WEFT_CHECK(txn.erase(Table::owned, file_key(version_, static_cast<std::uint32_t>(file))));
  for (const auto& [ino, links] : part(views_, blobs_.size() + files_, from, end))
    WEFT_CHECK(remove_links(txn, ino, links));
  for (const auto& [ino, links] : part(views_, held_steps(), from, end)) WEFT_CHECK(release_view(txn, ino));
  return {};
}

Status release_view(Txn& txn, Ino ino) {
  WEFT_TRY(std::optional<InodeRow> inode, find_row<InodeRow>(txn, Table::inodes, key_of(ino)));
  if (!inode) return {};  // of a version whose content could not be read
  if (inode->view_versions > 1) {
    --inode->view_versions;
    return put(txn, Table::inodes, key_of(ino), *inode);
  }
  WEFT_CHECK(txn.erase(Table::views, view_key(inode->view)));
  return txn.erase(Table::inodes, key_of(ino));
}

}  // namespace weft
