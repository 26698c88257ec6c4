// The parents of a version that is being published: the declared ones, or else a stored version that shares its
// tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/bytes/cold.h"
#include "weft/model/manifest.h"
#include "weft/result.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

// Returns the versions that MODEL[@V] texts name, each once. All of them must exist.
Result<std::vector<VersionRow>> resolve_parents(Store& store, const std::vector<std::string>& specs);

struct ParentWishes {
  std::vector<VersionRow> declared;
  // Models that the version's files name, each by its name or by its path in one of `mounts`; need not be stored.
  std::vector<std::string> bases;
  std::vector<std::string> mounts;  // directories where the store is mounted
  // If neither `declared` nor `bases` give a parent: the share of the version's tensor bytes that a found parent must
  // exceed. Empty: no search.
  std::optional<double> find_part;
};

struct Parents {
  std::vector<ParentRef> refs;         // with the tensors and bytes that they share
  std::vector<std::string> elsewhere;  // bases that are not stored here
};

// Returns the parents. The parent of a base is the model's version that shares most bytes with `child`, or its newest
// version if none shares any. A base whose model has a parent already adds nothing; bases that name one version come
// first. A found parent shares more than `find_part`; of several that share the same, it is the newest version of the
// model `child_name`, else the oldest. Removed versions are never parents.
Result<Parents> choose_parents(Store& store, ManifestResolver& resolver, const std::string& child_name,
                               const Manifest& child, const ParentWishes& wishes);

}  // namespace weft
