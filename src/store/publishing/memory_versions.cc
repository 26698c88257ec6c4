#include "store/publishing/memory_versions.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "catalog/apply.h"
#include "catalog/plan.h"
#include "index/blobs.h"
#include "index/pages.h"
#include "packs/unsynced.h"

namespace weft {
namespace {

constexpr std::size_t kHoldersAsked = 8;

// Visits a blob once per use: repeated lookups cost less than a set of visited blobs.
template <class Visit>
Status each_blob(const VersionContent& content, const Visit& visit) {
  for (const VersionContent::FileContent& file : content.files)
    for (const Extent& extent : file.extents) WEFT_CHECK(visit(extent.id));
  return {};
}

Result<bool> is_parent_in_memory(Txn& txn, const std::vector<ParentRef>& parents) {
  for (const ParentRef& parent : parents) {
    const auto row = live_version(txn, parent.model, parent.number);
    if (!row.ok() && row.error().code == Errc::not_found) continue;
    if (!row.ok()) return row.error();
    WEFT_TRY(const bool in_memory, has_note(txn, kInMemory, row->id));
    if (in_memory) return true;
  }
  return false;
}

// Finds the content of a version that is not on a disk, or is lost.
class MemoryUse {
 public:
  explicit MemoryUse(const PackDir& packs) : packs_(packs) {}

  // Adds a blob of this version. If the blob is not local, an older live version must have it.
  Status see(Txn& txn, const ContentId& id, VersionId version);

  const std::set<PackId>& unsynced() const { return unsynced_; }  // local packs that are not on the disk
  bool waits() const { return waits_; }  // a blob is not local, and the live versions that hold it are in memory only
  bool lost() const { return lost_; }    // a blob is not local, and no older live version holds it

 private:
  Status see(PackId pack);

  const PackDir& packs_;
  std::map<PackId, bool> seen_;
  std::set<PackId> unsynced_;
  bool waits_ = false;
  bool lost_ = false;
};

Status MemoryUse::see(Txn& txn, const ContentId& id, VersionId version) {
  WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, id));
  if (blob && !blob->row.absent()) return see(blob->row.place.pack);
  if (!blob) {
    lost_ = true;
    return {};
  }
  WEFT_TRY(const std::vector<Holder> holders, some_holders(txn, *blob, kHoldersAsked));
  bool waits = false;
  for (const auto& [holder, file] : holders) {
    if (holder >= version) break;
    WEFT_TRY(const VersionRow row, need_row<VersionRow>(txn, Table::versions, key_of(holder)));
    if (row.removed) continue;
    WEFT_TRY(const bool in_memory, has_note(txn, kInMemory, holder));
    if (!in_memory) return {};
    waits = true;
  }
  (waits ? waits_ : lost_) = true;
  return {};
}

Status MemoryUse::see(PackId pack) {
  const auto [at, fresh] = seen_.try_emplace(pack, false);
  if (!fresh) return {};
  WEFT_TRY(at->second, is_unsynced(packs_, pack));
  if (at->second) unsynced_.insert(pack);
  return {};
}

Result<MemoryUse> memory_use(StoreParts& parts, const VersionRow& version, const VersionContent& content) {
  MemoryUse use(parts.packs);
  RenewedTxn now(parts.index.env());
  WEFT_CHECK(each_blob(content, [&](const ContentId& id) -> Status {
    WEFT_TRY(Txn * txn, now.get());
    return use.see(*txn, id, version.id);
  }));
  return use;
}

}  // namespace

Result<bool> relies_on_memory(StoreParts& parts, Txn& txn, const PublishRequest& request) {
  WEFT_TRY(const bool used, has_note(txn, kMemoryUsed, 0));
  if (!used) return false;
  WEFT_TRY(const bool parent, is_parent_in_memory(txn, request.parents));
  if (parent) return true;
  MemoryUse use(parts.packs);
  WEFT_CHECK(each_blob(request.content, [&](const ContentId& id) { return use.see(txn, id, UINT64_MAX); }));
  return !use.unsynced().empty() || use.waits();
}

// Removes from the index the blobs that a pack of an earlier boot has lost.
Status StoreMemory::forget_lost(PackId pack, std::span<const PackEntry> lost) {
  for (std::span<const PackEntry> rest = lost; !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), limits::kBatchRows));
    rest = rest.subspan(some.size());
    WEFT_TRY(const WriterLock lock, parts_.index.lock());
    Status forgotten = parts_.index.write(lock, [&](Txn& txn) -> Status {
      for (const PackEntry& entry : some) {
        WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, entry.id));
        if (blob && blob->row.place == BlobPlace{pack, entry.offset}) WEFT_CHECK(forget_place(txn, *blob));
      }
      return bump_sequence(txn);
    });
    WEFT_CHECK(std::move(forgotten));
  }
  return {};
}

Status StoreMemory::flush_packs(const std::set<PackId>& packs, const FlushPace& pace) {
  for (const PackId pack : packs)
    WEFT_CHECK(
        flush_pack(parts_.packs, pack, pace, [&](std::span<const PackEntry> lost) { return forget_lost(pack, lost); }));
  return {};
}

Result<MemoryState> StoreMemory::flush_version(VersionId version, const FlushPace& pace) {
  WEFT_TRY(const VersionRow row, parts_.version(version));
  if (row.removed) return MemoryState::gone;
  WEFT_TRY(const VersionContent content, parts_.contents.of(row.manifest));
  for (;;) {
    WEFT_TRY(const MemoryUse use, memory_use(parts_, row, content));
    if (!use.unsynced().empty()) {
      WEFT_CHECK(flush_packs(use.unsynced(), pace));
      continue;
    }
    if (use.lost()) return MemoryState::lost;
    WEFT_TRY(Txn txn, parts_.index.read());
    WEFT_TRY(const bool parent, is_parent_in_memory(txn, row.parents));
    return use.waits() || parent ? MemoryState::waits : MemoryState::kept;
  }
}

Result<std::uint64_t> StoreMemory::unsynced_bytes(VersionId version) {
  WEFT_TRY(const VersionRow row, parts_.version(version));
  if (row.removed) return std::uint64_t{0};
  WEFT_TRY(const VersionContent content, parts_.contents.of(row.manifest));
  WEFT_TRY(const MemoryUse use, memory_use(parts_, row, content));
  std::uint64_t bytes = 0;
  for (const PackId pack : use.unsynced()) {
    WEFT_TRY(const PackToc toc, parts_.packs.toc(pack));
    bytes += toc.size;
  }
  return bytes;
}

Status StoreMemory::keep_version(std::string_view model, std::uint64_t number) {
  WEFT_CHECK(parts_.cluster.check_alone());
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  return parts_.index.commit_with_spare(lock, [&](Txn& txn) -> Result<Events> {
    WEFT_TRY(const VersionRow version, live_version(txn, model, number));
    return set_note(txn, version, VersionNote::in_memory, false);
  });
}

Status StoreMemory::lose_version(std::string_view model, std::uint64_t number, std::string_view why) {
  WEFT_CHECK(parts_.cluster.check_alone());
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  return parts_.index.commit_with_spare(lock, [&](Txn& txn) -> Result<Events> {
    WEFT_TRY(RemovalEvent event, plan_removal(txn, model, number, {}));
    event.lost = why;
    WEFT_CHECK(parts_.index.remove(txn, event));
    return Events{std::move(event)};
  });
}

Result<std::vector<VersionRow>> versions_in_memory(Store& store) {
  std::vector<VersionRow> versions;
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(const std::vector<VersionId> noted, snapshot->in_memory(0, SIZE_MAX));
  for (const VersionId id : noted) {
    WEFT_TRY(VersionRow row, snapshot->version(id));
    if (!store.cluster() || row.publisher == store.cluster()->node) versions.push_back(std::move(row));
  }
  return versions;
}

Result<MemoryState> flush_version(MemoryVersions& memory, FlushRecords& records, const VersionRow& version,
                                  std::string_view why, const FlushPace& pace) {
  WEFT_TRY(const MemoryState state, memory.flush_version(version.id, pace));
  Status recorded;
  if (state == MemoryState::kept) recorded = records.keep_version(version.model_name, version.number);
  if (state == MemoryState::lost) recorded = records.lose_version(version.model_name, version.number, why);
  const bool is_gone = !recorded.ok() && recorded.error().code == Errc::not_found;  // a user has removed it meanwhile
  if (!recorded.ok() && !(state == MemoryState::lost && is_gone)) return std::move(recorded).error();
  return state;
}

Status flush_memory(Store& store, MemoryVersions& memory) {
  WEFT_TRY(const std::vector<VersionRow> versions, versions_in_memory(store));
  for (const VersionRow& version : versions)
    WEFT_CHECK(flush_version(memory, memory, version,
                             "lost: it was only in the memory of this machine when that stopped",
                             [] { return Status{}; }));
  return {};
}

}  // namespace weft
