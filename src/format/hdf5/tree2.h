// B-trees of version 2: the links of new groups, and the chunks of datasets with several unlimited dimensions.
#pragma once

#include <cstdint>
#include <functional>

#include "format/hdf5/file.h"
#include "weft/result.h"

namespace weft {

// Numbers of the specification.
enum class Hdf5Tree2Type : std::uint8_t { links_by_name = 5, chunks = 10, filtered_chunks = 11 };

// Calls `record` for each record of a tree, in order.
using Hdf5Record = std::function<Status(Hdf5Fields record)>;
Status read_tree2(Hdf5File& file, std::uint64_t header, Hdf5Tree2Type type, const Hdf5Record& record);

}  // namespace weft
