// Blobs that no pack of the store has whole, and an assembled file has.
#include <algorithm>
#include <utility>

#include "diskformat/toc.h"
#include "repair/rebuild.h"
#include "repair/repair_pack.h"
#include "repair/rescue.h"

namespace weft {
namespace {

// Mounts may evict an assembled file at any moment: one that is gone is passed over.
class AssembledRescue {
 public:
  AssembledRescue(const PackDir& packs, WantedBlobs& wanted, RepairPack& fresh, const Progress& progress)
      : packs_(packs), wanted_(wanted), fresh_(fresh), progress_(progress) {}

  Status take_listed(PackId id);
  Status search(PackId id);

 private:
  Result<std::vector<PlacedBlob>> listed(PackId id) const;
  Status copy(PackId id, std::span<const PlacedBlob> blobs);

  const PackDir& packs_;
  WantedBlobs& wanted_;
  RepairPack& fresh_;
  const Progress& progress_;
};

// The rows of its table of contents; not verified.
Result<std::vector<PlacedBlob>> AssembledRescue::listed(PackId id) const {
  const auto toc = packs_.toc(id);
  if (!toc.ok()) return is_damage(toc.error()) ? salvaged_rows(packs_, id) : toc.error();
  std::vector<PlacedBlob> rows;
  for (const PackEntry& entry : toc->entries) rows.push_back({entry.id, entry.offset, entry.hint});
  return rows;
}

Status AssembledRescue::copy(PackId id, std::span<const PlacedBlob> blobs) {
  auto pack = packs_.open_alone(id);
  if (!pack.ok()) return is_damage(pack.error()) ? Status{} : Status{std::move(pack).error()};
  for (const PlacedBlob& blob : blobs) {
    if (blob.offset > (*pack)->size() || blob.id.length > (*pack)->size() - blob.offset) continue;
    const Status added = fresh_.add(blob.id, (*pack)->fd(), blob.offset, packs_.pack_file(id), progress_);
    if (!added.ok() && !is_damage(added.error())) return added;
    if (added.ok()) wanted_.erase(blob.id);
  }
  return {};
}

Status AssembledRescue::take_listed(PackId id) {
  WEFT_TRY(std::vector<PlacedBlob> rows, listed(id));
  std::erase_if(rows, [this](const PlacedBlob& row) { return !wanted_.contains(row.id); });
  return copy(id, rows);
}

Status AssembledRescue::search(PackId id) {
  const auto found = rescue_toc(packs_, id, {}, wanted_, progress_);
  if (!found.ok()) return is_damage(found.error()) ? Status{} : Status{found.error()};
  std::vector<PlacedBlob> blobs;
  for (const PackEntry& entry : found->entries) blobs.push_back({entry.id, entry.offset, entry.hint});
  return copy(id, blobs);
}

}  // namespace

Status rescue_assembled(const PackDir& assembled, WantedBlobs& wanted, RepairPack& fresh, const Progress& progress) {
  const auto packs = assembled.list();
  if (!packs.ok()) return is_damage(packs.error()) ? Status{} : packs.error();
  AssembledRescue rescue(assembled, wanted, fresh, progress);
  for (const PackId id : *packs) WEFT_CHECK(rescue.take_listed(id));
  for (const PackId id : *packs)
    if (!wanted.empty()) WEFT_CHECK(rescue.search(id));
  return {};
}

}  // namespace weft
