// The kinds of containers that there are. Each is stateless and lives for ever; containers.cc lists them.
#pragma once

#include "weft/records.h"

namespace weft {

const ContainerFormat& tar_container();
const ContainerFormat& lmdb_container();

}  // namespace weft
