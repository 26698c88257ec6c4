// What commits change in the mounted tree.
#pragma once

#include <cstdint>

#include "vfs/versions.h"
#include "weft/store.h"
#include "weft/vfs.h"

namespace weft {

// As Vfs::changes(). Takes short snapshots; none is held while `tell` runs.
Status tell_changes(Store& store, Versions& versions, std::uint64_t from, std::uint64_t to, const TellChanges& tell);

}  // namespace weft
