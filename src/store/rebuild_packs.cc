// Rebuild: what lies where.
#include <algorithm>

#include <fmt/core.h>

#include "store/apply.h"
#include "store/blob_check.h"
#include "store/pack_file.h"
#include "store/rebuild.h"
#include "store/rescue.h"
#include "store/toc.h"

namespace weft {
namespace {

class PackIndexer {
 public:
  PackIndexer(Env& env, const WriterLock& lock, const RebuildInput& input, Progress& progress, FsckReport& report)
      : env_(env), lock_(lock), input_(input), progress_(progress), report_(report) {}

  Result<std::vector<PackToc>> run(const std::function<Result<std::vector<ContentId>>()>& wanted);

 private:
  Status sort_packs();
  Status sort_pack(PackId pack);
  Status add(const PackToc& toc);
  Status add_entry(Txn& txn, PackId pack, const PackEntry& entry);
  Result<bool> verifies(const PackEntry& entry, const BlobPlace& place);
  Result<std::vector<PackToc>> rescue(const std::vector<ContentId>& wanted);
  Result<PackToc> rescue_pack(PackId pack, WantedBlobs& wanted);

  Env& env_;
  const WriterLock& lock_;
  const RebuildInput& input_;
  Progress& progress_;
  FsckReport& report_;
  std::vector<PackToc> cached_;  // after the others: what is this node's own counts first
  std::vector<PackToc> cut_;     // their packs end too early
  std::vector<PackId> mute_;     // without a table of contents
};

// Two packs may have one blob: when they were compacted, or imported at once. One that verifies is chosen; for fsck,
// that which the index names.
Status PackIndexer::add_entry(Txn& txn, PackId pack, const PackEntry& entry) {
  BlobPlace place{pack, entry.offset};
  WEFT_CHECK(put_hint(txn, entry.id, entry.hint));
  WEFT_TRY(bool made, add_blob(txn, entry.id, place));
  if (made) return {};
  std::optional<FoundBlob> known = input_.known ? input_.known(entry.id) : std::nullopt;
  if (known) return known->row.place == place ? put(txn, Table::blobs, known->key, known->row) : Status{};
  WEFT_TRY(std::optional<FoundBlob> found, find_blob(txn, entry.id));
  WEFT_TRY(bool good, verifies(entry, found->row.place));
  if (good) return {};
  WEFT_TRY(good, verifies(entry, place));
  return good ? put(txn, Table::blobs, found->key, BlobRow{place}) : Status{};
}

Result<bool> PackIndexer::verifies(const PackEntry& entry, const BlobPlace& place) {
  auto pack = input_.packs.open(place.pack);
  if (!pack.ok()) return is_damage(pack.error()) ? Result<bool>(false) : std::move(pack).error();
  PackEntry there = entry;
  there.offset = place.offset;
  Status status = check_blob((*pack)->fd(), pack_name(place.pack), there, progress_, {});
  if (!status.ok() && !is_damage(status.error())) return std::move(status).error();
  return status.ok();
}

Status PackIndexer::add(const PackToc& toc) {
  return env_.write(lock_, [&](Txn& txn) -> Status {
    for (const PackEntry& entry : toc.entries) WEFT_CHECK(add_entry(txn, toc.pack, entry));
    return toc.cached && !toc.entries.empty() ? put_note(txn, kCached, toc.pack) : Status{};
  });
}

// Indexes packs that are whole and sets the others aside.
Status PackIndexer::sort_packs() {
  WEFT_TRY(std::vector<PackId> packs, input_.packs.list());
  for (PackId pack : packs) {
    if (progress_.cancelled()) return Error{Errc::cancelled, "stopped"};
    WEFT_CHECK(sort_pack(pack));
  }
  return {};
}

Status PackIndexer::sort_pack(PackId pack) {
  const std::string path = pack_path(input_.packs.store_path(), pack);
  auto toc = input_.packs.toc(pack);
  auto st = stat_file(path);
  if (!st.ok() && st.error().code == Errc::not_found) return {};  // gc or a failed publish has just removed it
  if (!st.ok()) return std::move(st).error();
  if (!toc.ok() && !is_damage(toc.error())) return std::move(toc).error();
  if (!toc.ok()) {
    mute_.push_back(pack);
    if (!input_.mend) report_.problems.push_back(fmt::format("pack {}: {}", pack_name(pack), toc.error().message));
    return {};
  }
  if (static_cast<std::uint64_t>(st->st_size) < toc->size) {
    report_.problems.push_back(fmt::format("{}: expected {} bytes, got {}", path, toc->size, st->st_size));
    toc->size = static_cast<std::uint64_t>(st->st_size);
    cut_.push_back(std::move(*toc));
    return {};
  }
  if (!toc->cached) return add(*toc);
  cached_.push_back(std::move(*toc));
  return {};
}

Result<PackToc> PackIndexer::rescue_pack(PackId pack, WantedBlobs& wanted) {
  WEFT_TRY(PackToc toc, rescue_toc(input_.packs, pack, wanted, progress_));
  report_.repaired.push_back(
      fmt::format("pack {}: its table of contents is made again; {} blobs that versions need are "
                  "found",
                  pack_name(pack), toc.entries.size()));
  WEFT_CHECK(add(toc));
  return toc;
}

Result<std::vector<PackToc>> PackIndexer::rescue(const std::vector<ContentId>& wanted) {
  WantedBlobs blobs;
  {
    WEFT_TRY(Txn txn, env_.read());
    for (const ContentId& id : wanted) {
      WEFT_TRY(std::optional<FoundBlob> found, find_blob(txn, id));
      if (!found) blobs.add(id);
    }
  }
  progress_.phase("looking for blobs in packs without a table of contents");
  std::vector<PackToc> remade;
  for (PackId pack : mute_) {
    WEFT_TRY(PackToc toc, rescue_pack(pack, blobs));
    remade.push_back(std::move(toc));
  }
  return remade;
}

Result<std::vector<PackToc>> PackIndexer::run(const std::function<Result<std::vector<ContentId>>()>& wanted) {
  WEFT_CHECK(sort_packs());
  for (const PackToc& toc : cached_) WEFT_CHECK(add(toc));
  for (PackToc& toc : cut_) {
    std::erase_if(toc.entries, [&toc](const PackEntry& entry) {
      return entry.offset > toc.size || entry.id.length > toc.size - entry.offset;
    });
    WEFT_CHECK(add(toc));
  }
  if (mute_.empty() || !input_.mend) return std::vector<PackToc>();
  WEFT_TRY(std::vector<ContentId> needed, wanted());
  return rescue(needed);
}

}  // namespace

Result<std::vector<PackToc>> index_packs(Env& env, const WriterLock& lock, const RebuildInput& input,
                                         const std::function<Result<std::vector<ContentId>>()>& wanted,
                                         Progress& progress, FsckReport& report) {
  return PackIndexer(env, lock, input, progress, report).run(wanted);
}

}  // namespace weft
