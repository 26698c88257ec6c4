#include "store/unreaped.h"

#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include "store/notes.h"
#include "store/tables.h"

namespace weft {

Result<std::vector<VersionRow>> unreaped_versions(Txn& txn) {
  WEFT_TRY(const std::vector<VersionId> ids, noted(txn, kUnreaped, 0, SIZE_MAX));
  std::vector<VersionRow> versions;
  for (const VersionId id : ids) {
    WEFT_TRY(VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(id)));
    versions.push_back(std::move(version));
  }
  return versions;
}

Result<KeptBlobs> Unreaped::blobs(Txn& txn) {
  WEFT_TRY(const std::vector<VersionRow> versions, unreaped_versions(txn));
  std::unordered_set<ContentId> added;
  for (const VersionRow& version : versions) {
    if (known_.contains(version.id)) continue;
    WEFT_TRY(const bool counts, counts_ ? counts_(version.id) : Result<bool>(true));
    if (!counts) continue;
    WEFT_CHECK(add(version, added));
    known_.insert(version.id);
  }
  if (added.empty()) return kept_;
  if (kept_) added.insert(kept_->begin(), kept_->end());
  kept_ = std::make_shared<const std::unordered_set<ContentId>>(std::move(added));
  return kept_;
}

// A version whose manifest never came here needs nothing.
Status Unreaped::add(const VersionRow& version, std::unordered_set<ContentId>& blobs) {
  const auto content = content_(version.manifest);
  if (!content.ok() && content.error().code == Errc::not_found) return {};
  if (!content.ok())
    return Error{content.error().code, fmt::format("{}@{}, which is removed and may be open: {}", version.model_name,
                                                   version.number, content.error().message)};
  for (const VersionContent::FileContent& file : content->files)
    for (const Extent& extent : file.extents) blobs.insert(extent.id);
  return {};
}

}  // namespace weft
