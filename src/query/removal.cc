#include "query/removal.h"

#include <algorithm>

#include "weft/node.h"

namespace weft {
namespace {

void add(std::vector<VersionRow>& rows, VersionRow row) {
  const auto same = [&](const VersionRow& other) { return other.id == row.id; };
  if (std::none_of(rows.begin(), rows.end(), same)) rows.push_back(std::move(row));
}

}  // namespace

Result<std::vector<VersionRow>> versions_to_remove(Store& store, std::span<const std::string> specs, bool all) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  std::vector<VersionRow> rows;
  for (const std::string& spec : specs) {
    WEFT_TRY(VersionRow version, resolve_version(*snapshot, spec));
    if (!all) {
      add(rows, std::move(version));
      continue;
    }
    WEFT_TRY(auto versions, snapshot->versions(version.model));
    for (VersionRow& row : versions)
      if (!row.removed) add(rows, std::move(row));
  }
  return rows;
}

}  // namespace weft
