// The swarms in a daemon's status, as text.
#pragma once

#include <string>
#include <vector>

#include "base/json_value.h"

namespace weft {

// Returns a line for each version that the node of this daemon fetches by a swarm, sends to one, or introduces nodes
// for. Members that the status lacks count as 0.
std::vector<std::string> swarm_lines(const JsonValue& daemon);

}  // namespace weft
