// The parents of a version that is being published: those that somebody declares, or else the one that is found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/lineage.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// MODEL[@V] texts; each must be there. Each version once.
Result<std::vector<VersionRow>> resolve_parents(Store& store, const std::vector<std::string>& specs);

struct ParentWishes {
  std::vector<VersionRow> declared;
  std::vector<std::string> bases;   // names that the version's files give; need not be stored
  std::optional<double> find_part;  // of the version's tensor bytes, when nobody declares a parent; none: do not look
};

struct Parents {
  std::vector<ParentRef> refs;         // with what they share
  std::vector<std::string> elsewhere;  // bases that are not stored here
};

// Of a base, the version that shares most bytes with `child`, the newest when none does; a base whose model is among
// the declared ones adds nothing. A found parent shares more than `find_part`; of several that share the same, the
// newest version of the model `child_name`, else the oldest. Removed versions are nobody's parent.
Result<Parents> settle_parents(Store& store, const std::string& child_name, const Manifest& child,
                               const ParentWishes& wishes);

}  // namespace weft
