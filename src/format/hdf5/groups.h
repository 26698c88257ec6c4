// Links of HDF5's groups, in all forms: symbol tables, link messages, and links in a fractal heap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/hdf5/file.h"
#include "format/hdf5/header.h"
#include "weft/result.h"

namespace weft {

struct Hdf5Link {
  std::string name;                       // any bytes; of a longer one, limits::kTensorNameMax + 1
  std::uint64_t header = kHdf5Undefined;  // of a hard link: the address of the object's header
  bool hard = true;                       // false: a soft, external or user-defined link, which weft never follows
};

bool is_hdf5_group(const Hdf5Header& header);

// Returns the links of a group.
Result<std::vector<Hdf5Link>> read_links(Hdf5File& file, const Hdf5Header& group);

}  // namespace weft
