#include "origin/version_needs.h"

#include <algorithm>

#include <fmt/core.h>

#include "origin/names.h"
#include "weft/model/manifest.h"
#include "weft/names.h"

namespace weft {

VersionNeeds::VersionNeeds(const OriginDir& origin, CollectionOrder& order, const OriginGcOptions& options,
                           Progress& progress)
    : origin_(origin), order_(order), progress_(progress), horizon_ns_(options.horizon_ns) {
  for (const PurgedVersion& version : options.purged) purged_.emplace(version.name.model, version.uid);
}

void VersionNeeds::follow(std::uint64_t horizon_ns) {
  horizon_ns_ = std::max(horizon_ns_, horizon_ns);
}

Status VersionNeeds::read_first() {
  WEFT_TRY(const OriginNames journal, read_names(origin_, progress_));
  WEFT_TRY(const std::vector<VersionRow> rows, order_.versions());
  std::set<Uuid> known;
  std::set<OriginNames::Name> names;
  for (const VersionRow& row : rows) {
    known.insert(row.uid);
    names.emplace(row.model_name, row.number);
  }
  for (const auto& [name, row] : journal.versions) {
    if (row.removed || known.contains(row.uid)) continue;
    return Error{Errc::changed,
                 fmt::format("origin {}: it has {}, and the registry has {} of that name: the registry has lost "
                             "history, and nothing is freed",
                             origin_.path(), spec_of(name.first, name.second),
                             names.contains(name) ? "another version" : "no version")};
  }
  return need(rows);
}

Status VersionNeeds::read_again() {
  WEFT_TRY(const std::vector<VersionRow> rows, order_.versions());
  return need(rows);
}

bool VersionNeeds::needs_content(const VersionRow& row) const {
  return !row.removed ||
         (row.removed_ns > horizon_ns_ && row.lost.empty() && !purged_.contains({row.model_name, row.uid}));
}

// A version whose blobs were not known before is looked at again.
Status VersionNeeds::need(const std::vector<VersionRow>& rows) {
  progress_.phase("reading the places of versions");
  for (const VersionRow& row : rows) {
    WEFT_CHECK(check_cancelled(progress_));
    if (!needs_content(row)) continue;
    const bool first = counted_.emplace(row.uid, row.manifest, row.model_name, row.number).second;
    if (first && row.removed) ++in_grace_;
    files_.add_manifest(row.manifest);
    if (listed_.contains(row.manifest)) continue;
    WEFT_TRY(const bool listed, need_blobs(row));
    if (listed) listed_.insert(row.manifest);
  }
  return {};
}

// Adds the blobs of a version. False if the version needs none: it was removed, maybe while this runs, and has no
// places: an undelete then does not find it at the origin.
Result<bool> VersionNeeds::need_blobs(const VersionRow& row) {
  const auto places = origin_.places(row.manifest);
  if (places.ok()) {
    files_.add_places(*places);
    placed_.insert(row.manifest);
    return true;
  }
  const bool none = places.error().code == Errc::not_found;
  if (row.removed && none) return false;
  return need_unplaced(row, none);
}

// The same for a version without whole places. `no_places`: they are missing, not damaged.
Result<bool> VersionNeeds::need_unplaced(const VersionRow& row, bool no_places) {
  auto bytes = origin_.manifest(row.manifest);
  if (!bytes.ok()) bytes = order_.manifest(row);
  const auto manifest = bytes.ok() ? decode_manifest(*bytes) : Result<Manifest>(bytes.error());
  if (!manifest.ok() && no_places) {
    WEFT_TRY(const bool live, order_.is_live(row));
    if (!live) return false;
  }
  if (!manifest.ok() && row.removed) return files_.add_unknown(), false;
  if (!manifest.ok())
    return Error{Errc::busy, fmt::format("{}: its manifest is neither at the origin nor on a node that answers, so "
                                         "the packs that it needs are not known and nothing is freed: {}",
                                         spec_of(row), manifest.error().message)};
  files_.add_unplaced();
  for (const File& file : manifest->files)
    for (const Extent& extent : file.extents) files_.add_unplaced_blob(extent.id);
  return true;
}

}  // namespace weft
