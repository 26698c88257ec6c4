// The checksum of HDF5's metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

// lookup3 by Bob Jenkins (hashlittle, first value 0), as the HDF5 specification asks for it.
std::uint32_t hdf5_checksum(std::span<const std::byte> bytes);

}  // namespace weft
