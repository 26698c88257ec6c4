// Queries that walk the whole index in many transactions.
#include <algorithm>

#include <fmt/core.h>

#include "catalog/attach.h"
#include "index/blobs.h"
#include "index/pages.h"
#include "os/sys.h"
#include "store/reading/queries.h"

namespace weft {
namespace {

constexpr std::size_t kHoldersAtOnce = 64;  // holders read in one transaction, each with all its views

// Counts the pack files on disk, without the index.
Status count_packs(const SafePath& store_path, StoreCounts& counts) {
  const SafePath dir = store_path / "packs";
  WEFT_TRY(std::vector<std::string> names, list_directory(dir));
  for (const std::string& name : names) {
    const bool is_copy = name.ends_with(".copy");
    if (!is_copy && !name.ends_with(".pack")) continue;
    auto st = stat_file(dir / name);
    if (!st.ok()) continue;  // removed by gc meanwhile
    if (!is_copy) ++counts.packs;
    counts.pack_disk_bytes += static_cast<std::uint64_t>(st->st_blocks) * 512;
  }
  return {};
}

template <class Row, class Visit>
Status visit_rows(Env& env, Table table, const Visit& visit) {
  return visit_all(env, table, {}, [&](Txn& txn, const Entry& entry) -> Status {
    WEFT_TRY(const Row row, row_from<Row>(txn, table, entry.key, entry.value));
    visit(entry.key, row);
    return {};
  });
}

Status count_rows(Env& env, StoreCounts& counts) {
  WEFT_CHECK(visit_rows<ModelRow>(env, Table::models, [&](Bytes, const ModelRow& row) {
    if (row.latest != 0) ++counts.models;
  }));
  WEFT_CHECK(visit_rows<VersionRow>(env, Table::versions, [&](Bytes, const VersionRow& row) {
    if (!row.removed) ++counts.versions;
    if (row.lost.empty()) return;
    ++counts.lost;
    if (row.removed_ns >= counts.newest_lost.removed_ns) counts.newest_lost = row;
  }));
  VersionId under_way = 0;  // views that a large publish adds belong to no other version
  {
    WEFT_TRY(Txn txn, env.read());
    WEFT_TRY(under_way, version_under_way(txn));
  }
  WEFT_CHECK(visit_rows<InodeRow>(env, Table::inodes, [&](Bytes, const InodeRow& row) {
    if (row.view_links != 0 && row.view_first != under_way) ++counts.views;
  }));
  WEFT_TRY(Txn txn, env.read());
  WEFT_TRY(counts.tags, txn.count(Table::tags));
  return {};
}

Status count_blobs(Env& env, StoreCounts& counts) {
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t dead = 0;
  WEFT_CHECK(visit_rows<BlobRow>(env, Table::blobs, [&](Bytes key, const BlobRow& blob) {
    ++blobs;
    bytes += blob_length(key);
    if (!blob.absent()) return;
    ++counts.absent_blobs;
    counts.absent_bytes += blob_length(key);
  }));
  WEFT_CHECK(visit_all(env, Table::dead, {}, [&](Txn&, const Entry& entry) -> Status {
    ++dead;
    counts.dead_bytes += blob_length(entry.key);
    return {};
  }));
  counts.blobs = blobs - std::min(dead, blobs);
  counts.blob_bytes = bytes - std::min(counts.dead_bytes, bytes);
  return {};
}

Result<bool> has_view(Txn& txn, VersionId version, Ino view) {
  WEFT_TRY(const std::optional<LocalRow> local, find_row<LocalRow>(txn, Table::locals, key_of(version)));
  return local && std::ranges::find(local->view_inos, view) != local->view_inos.end();
}

// Returns the first live version that holds the view's bytes and has the view.
Result<std::optional<VersionId>> holder_with(Env& env, const InodeRow& view) {
  std::optional<VersionId> found;
  WEFT_CHECK(walk(env, [&](const auto& txn, std::string_view from) -> Result<std::string> {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(*txn, view.view.content));
    if (!blob) return std::string();
    WEFT_TRY(Page<Holder> page, holders_of(*txn, *blob, from, kHoldersAtOnce));
    for (const auto& [version, file] : page.rows) {
      WEFT_TRY(const VersionRow row, need_row<VersionRow>(*txn, Table::versions, key_of(version)));
      WEFT_TRY(const bool has, row.removed ? Result<bool>(false) : has_view(*txn, version, view.base));
      if (!has) continue;
      found = version;
      return std::string();
    }
    return std::move(page.next);
  }));
  return found;
}

}  // namespace

Result<std::uint64_t> count_open_removed(StoreParts& parts) {
  std::uint64_t count = 0;
  WEFT_TRY(const std::vector<VersionId> versions, all_noted(parts.index.env(), kUnreaped));
  for (const VersionId version : versions) {
    WEFT_TRY(const bool open, parts.open_versions->is_open(version));
    if (open) ++count;
  }
  return count;
}

// Returns a version that has the view, live if possible. Usually that is the first version that had it. Only views of
// removed versions, and tensors without bytes, which have no holders, need the final walk of all versions.
Result<VersionId> keeper_of(StoreParts& parts, const InodeRow& view) {
  {
    WEFT_TRY(Txn txn, parts.index.read());
    WEFT_TRY(const auto first, find_row<VersionRow>(txn, Table::versions, key_of(view.view_first)));
    if (first && !first->removed) return first->id;
  }
  WEFT_TRY(std::optional<VersionId> found, holder_with(parts.index.env(), view));
  if (found) return *found;
  WEFT_CHECK(visit_all(parts.index.env(), Table::locals, {}, [&](Txn& txn, const Entry& entry) -> Status {
    const VersionId version = number_at(entry.key, 0);
    WEFT_TRY(const bool has, has_view(txn, version, view.base));
    if (!has) return {};
    WEFT_TRY(const VersionRow row, need_row<VersionRow>(txn, Table::versions, entry.key));
    if (!found || !row.removed) found = version;
    return {};
  }));
  if (!found) return Error{Errc::not_found, fmt::format("no version has the view of inode {}", view.base)};
  return *found;
}

Result<StoreCounts> count_store(StoreParts& parts) {
  StoreCounts counts;
  WEFT_CHECK(count_rows(parts.index.env(), counts));
  WEFT_CHECK(count_blobs(parts.index.env(), counts));
  WEFT_CHECK(count_packs(parts.path, counts));
  WEFT_TRY(counts.open_removed, count_open_removed(parts));
  return counts;
}

// Locks the version before it reads the row: gc locks, too, before it erases the local row of a removed version.
Result<VersionHold> hold_version(StoreParts& parts, VersionId version) {
  const auto gone = [&] { return Error{Errc::not_found, fmt::format("version of id {}: it was removed", version)}; };
  auto held = parts.open_versions->hold(version);
  if (!held.ok() && held.error().code == Errc::busy) return gone();
  if (!held.ok() || parts.open_versions->is_sure(version)) return held;
  WEFT_TRY(Txn txn, parts.index.read());
  WEFT_TRY(const std::optional<VersionRow> row, find_row<VersionRow>(txn, Table::versions, key_of(version)));
  if (!row) return Error{Errc::not_found, fmt::format("no version of id {}", version)};
  WEFT_TRY(const std::optional<Bytes> local, txn.get(Table::locals, key_of(version)));
  if (row->removed && !local) return gone();
  parts.open_versions->make_sure(version);
  return held;
}

}  // namespace weft
