// Checks of a node before it uses the registry of a cluster.
#pragma once

#include "weft/cluster/registry.h"
#include "weft/result.h"

namespace weft {

Status check_options(const EtcdOptions& options);  // Errc::invalid
// Errc::invalid: the store belongs to no cluster and has versions.
Status check_may_join(Store& store);

}  // namespace weft
