// What a node's mirror of its registry says of names: enough to tell them to one that begins anew.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/cluster_store.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

struct MirroredNames {
  using Name = std::pair<std::string, std::uint64_t>;  // model, number
  std::map<Name, MirroredVersion> versions;            // tombstones too; without packs
  std::vector<MirroredTag> tags;

  // The live version of this name and content; null when it is another, a removed one, or none.
  const MirroredVersion* live(const Name& name, const Digest& manifest) const;
};

Result<MirroredNames> mirrored_names(Snapshot& snapshot);

}  // namespace weft
