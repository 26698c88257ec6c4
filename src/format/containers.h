// The built-in kinds of containers. Each is stateless and lives as long as the process; containers.cc lists them.
#pragma once

#include "weft/model/records.h"

namespace weft {

const ContainerFormat& tar_container();
const ContainerFormat& lmdb_container();

}  // namespace weft
