// A claim in etcd: keys that this node puts under a lease of its own. One is the node that has the claim, one the node
// that is next in line; a third one names the last holder for an hour. A node takes a free claim only if no other node
// is next in line. The values are ClaimHolders.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "registry/own_registry.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"

namespace weft {

// As Registry::claim(). `own` outlives the claim. `self`: this node. `show`: returns once this node's store shows all
// that was published before the call.
std::unique_ptr<Claim> claim_in_etcd(OwnRegistry& own, ClaimHolder self, std::string_view key,
                                     std::chrono::seconds lease, std::function<Status()> show);

}  // namespace weft
