// weft fsck --repair.
#pragma once

#include <string>
#include <vector>

#include "cli/shared/context.h"
#include "weft/fsck.h"

namespace weft {

struct RepairOutcome {
  std::vector<std::string> repaired;  // what was wrong with each blob that is whole again
  std::vector<std::string> left;      // what is wrong with the others, and why it stays so
};

// Looks for each blob below the paths first, then at the origin, then on peers. A daemon of the store stores what is
// found, and asks the origin and the peers itself. Without one this process does, and asks no peers.
Result<RepairOutcome> repair_blobs(const Context& context, Store& store, const std::vector<DamagedBlob>& damaged,
                                   const std::vector<std::string>& from);

}  // namespace weft
