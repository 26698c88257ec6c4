// Room that is kept for what makes room: on a disk that others have filled, removing a version still needs a record in
// the journal and pages of the index.
#pragma once

#include <string>

#include "os/safe_path.h"

namespace weft {

// Both best effort, under the writer lock. STORE/index/spare takes 4 MiB, less on small disks.
void make_spare(const SafePath& store_path);
// Gives the room to whoever asks next. False: there was none.
bool release_spare(const SafePath& store_path);

}  // namespace weft
