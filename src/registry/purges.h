// Purged versions, in the keys p/. A purged version is removed, is never undeleted, and each node frees its content at
// once. The mirror writes each purge to its store: so a purge that etcd has lost comes back from any node that has
// heard of it. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "registry/own_registry.h"
#include "registry/registry_compare.h"
#include "registry/registry_list.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Returns the purged versions that a store has, with their present numbers and without authors.
Result<std::vector<PurgedVersion>> purged_in(Store& store);

class Purges {
 public:
  explicit Purges(OwnRegistry& own) : own_(own) {}  // `own` outlives this

  // Records that a removed version is purged, and returns the revision of the record. A repeated purge has no effect.
  // Errc::exists: it is live, or another version has the number. Errc::not_found: there is no such version. Errc::busy:
  // others change its record all the time.
  Result<std::uint64_t> put(const PurgedVersion& version);
  // Puts keys again that a registry has lost, whose versions it has. Adds the purges that the registry cannot have,
  // such as those of versions that are live there, to `impossible`, and calls `refused` with the reason.
  Status bring_back(std::span<const PurgedVersion> lost, Impossible& impossible, const RefusalSink& refused);

 private:
  Result<std::optional<std::uint64_t>> try_put(const PurgedVersion& version);

  OwnRegistry& own_;
};

}  // namespace weft
