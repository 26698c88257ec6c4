// A claim in etcd: a key that this node puts under a lease of its own. Its value is the member, whose `since_ns` is the
// time of the claim.
#pragma once

#include <chrono>
#include <string>

#include "registry/own_registry.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"

namespace weft {

// As Registry::claim(). `own` outlives the claim.
Result<ClaimOutcome> claim_in_etcd(OwnRegistry& own, const Member& self, std::string_view key,
                                   std::chrono::seconds lease);

}  // namespace weft
