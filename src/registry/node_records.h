// Changes of the records of nodes, k/NODE, and of members by other hands than the membership of the node itself.
#pragma once

#include <string>
#include <vector>

#include "registry/own_registry.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"

namespace weft {

// Deletes the record of an absent node. `known`: all nodes. Errc::busy: the node is present. Errc::not_found: there is
// no such node.
Status delete_node_record(OwnRegistry& own, const std::vector<KnownNode>& known, const std::string& node);
// Deletes the record and the member key of this node, whose membership has ended.
Status delete_own_records(OwnRegistry& own, const std::string& node);
// Records that a drain of the node begins. Errc::not_found: there is no such node.
Status record_drain(OwnRegistry& own, const std::string& node);

}  // namespace weft
