// The life of the announcer: follows the store, and performs what happens until its mount is gone.
#pragma once

#include "fuse/process/options.h"
#include "fuse/process/shared_state.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// Returns when the mount is gone; its supervisor kills it otherwise. The process has one thread.
Status announce(Store& store, const MountOptions& options, SharedHead& head);

}  // namespace weft
