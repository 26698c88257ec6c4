// The announcer's main loop: follows the store and announces each change until the mount is gone.
#pragma once

#include "fuse/process/options.h"
#include "fuse/process/shared_state.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Returns success when the mount is gone. The supervisor may kill the process before. The process has one thread.
Status announce(Store& store, const MountOptions& options, SharedHead& head);

}  // namespace weft
