// A claim in etcd: keys that this node puts under a lease of its own. One is the node that has the claim. Each node
// that waits has one of its own, and their order in the line is that in which the keys were made. A third kind names
// the last holder for an hour. A node takes a free claim only if no other node is before it in line. The values are
// ClaimHolders.
//
// The holder and the line are a tree in which each node copies from its parent: the nodes 1 and 2 in line from the
// holder, 3 and 4 from node 1, 5 and 6 from node 2. If a node dies, those behind it move up with the end of its lease.
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
