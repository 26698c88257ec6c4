// The catalog according to an origin's journal: all versions, the removed ones among them, and the tags.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "origin/dir.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

struct OriginNames {
  using Name = std::pair<std::string, std::uint64_t>;  // model, number
  // Including tombstones. A version whose number another one has gets a new number, and `mended` names it.
  std::map<Name, VersionRow> versions;
  std::vector<MirroredTag> tags;      // latest state, of live versions
  std::vector<std::string> problems;  // damaged, missing or contradictory records
  std::vector<std::string> mended;    // damaged records, recovered from their names
};

// Reads the journal. Errc::cancelled. A damaged record is a problem, not an error. A version with a removal record is
// never live, even if the record is damaged: the name of the record identifies the version.
Result<OriginNames> read_names(const OriginDir& origin, Progress& progress);

// Returns the last of the records of one tag, which several nodes wrote; there is one at least: of one cluster the one
// with the largest stamp, whatever the clocks of the nodes say. A cluster whose registry `weft restore` has filled
// follows the one whose last record it has, with its time. Of two other clusters, the one with the latest last record
// counts.
MirroredTag last_of(const std::vector<CatalogRecord>& records);

// Returns the versions in a possible order of their publishes: by time, numbers of a model ascending, parents first.
std::vector<const VersionRow*> in_order(const std::map<OriginNames::Name, VersionRow>& versions);

}  // namespace weft
