// What an origin's journal says, put together: which versions there are, which of them are gone, where tags stand.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "origin/dir.h"
#include "weft/cluster_store.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

struct OriginNames {
  using Name = std::pair<std::string, std::uint64_t>;  // model, number
  std::map<Name, VersionRow> versions;                 // tombstones too
  std::vector<MirroredTag> tags;                       // as they stood last, of live versions
  std::vector<std::string> problems;                   // records that are damaged, missing, or contradict
  std::vector<std::string> mended;                     // damaged, and all they said is known from their names
};

// Errc::cancelled; damage of single records is a problem, not an error. No version that some record removes is live,
// however damaged that is: the name of a removal tells which version it means.
Result<OriginNames> read_names(const OriginDir& origin, Progress& progress);

// Of records of one tag, as several nodes wrote them, the last: by their times, which may differ as clocks do; between
// two of about one time the registry's revision knows better, if it is of one registry.
MirroredTag last_of(std::vector<SaidRecord> records);

// In an order in which they may have come: by time, numbers of one model ascending, parents first.
std::vector<const VersionRow*> in_order(const std::map<OriginNames::Name, VersionRow>& versions);

}  // namespace weft
