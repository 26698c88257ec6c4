// Fixed arrays of HDF5: an index of chunks for datasets of a fixed shape.
#pragma once

#include <cstdint>
#include <functional>

#include "format/hdf5/file.h"
#include "weft/result.h"

namespace weft {

// The place of a chunk. `at` is kHdf5Undefined if the chunk was never written.
struct Hdf5ArrayEntry {
  std::uint64_t number = 0;
  std::uint64_t at = kHdf5Undefined;
  std::uint64_t bytes = 0;
  std::uint64_t filters_skipped = 0;
};

// Calls `entry` for each of `total` entries, in order. Entries of pages that were never written are left out.
// `chunk_bytes`: of a chunk without filters.
Status read_fixed_array(Hdf5File& file, std::uint64_t header, std::uint64_t total, std::uint64_t chunk_bytes,
                        const std::function<Status(const Hdf5ArrayEntry&)>& entry);

}  // namespace weft
