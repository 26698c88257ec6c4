// The health that a node reports to another node: its clock, its disk, and the versions that it holds. Any thread.
#pragma once

#include <functional>

#include "peers/messages.h"
#include "weft/content.h"
#include "weft/store/store.h"

namespace weft {

// True if the manifest and all blobs of a version are local. False too if `ending` returns true meanwhile.
bool holds_whole(Store& store, const Digest& manifest, const std::function<bool()>& ending);

// Returns the facts of this node. Judges the asked versions for a second at most, so the answer may have fewer states
// than the question has manifests, but has one at least.
Result<PeerHealth> health_facts(Store& store, const AskHealth& ask);

}  // namespace weft
