// Rebuild: what lies where.
#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sys.h"
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

  Result<std::vector<PackToc>> run(const std::function<Result<std::vector<Extent>>()>& wanted);

 private:
  Status sort_packs();
  Status sort_pack(PackId pack);
  Status add(const PackToc& toc);
  Status add_entry(Txn& txn, PackId pack, const PackEntry& entry);
  Result<bool> verifies(const PackEntry& entry, const BlobPlace& place);
  Status note_stray(PackId pack);
  Result<std::vector<PackToc>> rescue(const std::vector<Extent>& wanted);
  Result<PackToc> rescue_pack(PackId pack, std::vector<PlacedBlob> known, WantedBlobs& wanted);
  Result<WantedBlobs> missing_of(const std::vector<Extent>& wanted);
  Result<std::map<PackId, std::vector<PlacedBlob>>> known_places();

  Env& env_;
  const WriterLock& lock_;
  const RebuildInput& input_;
  Progress& progress_;
  FsckReport& report_;
  std::vector<PackToc> cached_;       // after the others: what is this node's own counts first
  std::vector<PackToc> cut_;          // their packs end too early
  std::vector<PackId> mute_;          // without a table of contents
  std::map<PackId, PackToc> strays_;  // whole tables of contents under the name of another pack
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
    WEFT_CHECK(note_stray(pack));
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

// Two .toc files may have changed places.
Status PackIndexer::note_stray(PackId pack) {
  auto toc = read_toc(toc_path(input_.packs.store_path(), pack));
  if (!toc.ok()) return is_damage(toc.error()) ? Status{} : Status{std::move(toc).error()};
  strays_.insert_or_assign(toc->pack, std::move(*toc));
  return {};
}

Result<PackToc> PackIndexer::rescue_pack(PackId pack, std::vector<PlacedBlob> known, WantedBlobs& wanted) {
  const auto damaged = read_file(toc_path(input_.packs.store_path(), pack), limits::kRecordMax);
  if (!damaged.ok() && !is_damage(damaged.error())) return damaged.error();
  if (damaged.ok()) std::ranges::copy(salvage_toc(*damaged, pack), std::back_inserter(known));
  if (const auto stray = strays_.find(pack); stray != strays_.end())
    for (const PackEntry& entry : stray->second.entries) known.push_back({entry.id, entry.offset, entry.hint});
  WEFT_TRY(PackToc toc, rescue_toc(input_.packs, pack, known, wanted, progress_));
  report_.repaired.push_back(
      fmt::format("pack {}: its table of contents is made again with {} blobs", pack_name(pack), toc.entries.size()));
  WEFT_CHECK(add(toc));
  return toc;
}

// Extents that no pack with a table of contents has.
Result<WantedBlobs> PackIndexer::missing_of(const std::vector<Extent>& wanted) {
  WantedBlobs blobs;
  WEFT_TRY(Txn txn, env_.read());
  for (const Extent& extent : wanted) {
    WEFT_TRY(std::optional<FoundBlob> found, find_blob(txn, extent.id));
    if (!found) blobs.add(extent);
  }
  return blobs;
}

Result<std::map<PackId, std::vector<PlacedBlob>>> PackIndexer::known_places() {
  if (!input_.placed) return std::map<PackId, std::vector<PlacedBlob>>();
  return input_.placed({mute_.begin(), mute_.end()});
}

Result<std::vector<PackToc>> PackIndexer::rescue(const std::vector<Extent>& wanted) {
  progress_.phase("looking for blobs in packs without a table of contents");
  WEFT_TRY(WantedBlobs blobs, missing_of(wanted));
  WEFT_TRY(auto known, known_places());
  std::vector<PackToc> remade;
  for (PackId pack : mute_) {
    WEFT_TRY(PackToc toc, rescue_pack(pack, std::move(known[pack]), blobs));
    remade.push_back(std::move(toc));
  }
  return remade;
}

Result<std::vector<PackToc>> PackIndexer::run(const std::function<Result<std::vector<Extent>>()>& wanted) {
  WEFT_CHECK(sort_packs());
  for (const PackToc& toc : cached_) WEFT_CHECK(add(toc));
  for (PackToc& toc : cut_) {
    std::erase_if(toc.entries, [&toc](const PackEntry& entry) {
      return entry.offset > toc.size || entry.id.length > toc.size - entry.offset;
    });
    WEFT_CHECK(add(toc));
  }
  if (mute_.empty() || !input_.mend) return std::vector<PackToc>();
  WEFT_TRY(std::vector<Extent> needed, wanted());
  return rescue(needed);
}

}  // namespace

Result<std::vector<PackToc>> index_packs(Env& env, const WriterLock& lock, const RebuildInput& input,
                                         const std::function<Result<std::vector<Extent>>()>& wanted, Progress& progress,
                                         FsckReport& report) {
  return PackIndexer(env, lock, input, progress, report).run(wanted);
}

}  // namespace weft
