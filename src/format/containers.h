// The built-in kinds of containers. Each is stateless and lives as long as the process; containers.cc lists them.
#pragma once

#include "weft/records.h"

namespace weft {

const ContainerFormat& tar_container();
const ContainerFormat& lmdb_container();

}  // namespace weft
