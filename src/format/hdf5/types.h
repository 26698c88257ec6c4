// Element types and shapes of HDF5's datasets.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "format/hdf5/fields.h"
#include "weft/dtype.h"
#include "weft/result.h"

namespace weft {

struct Hdf5Type {
  std::optional<DType> dtype;  // none: weft has no such type
  std::uint64_t bytes = 0;     // of an element; not 0
  bool big_endian = false;
  bool opaque = false;   // bytes, of which an attribute may say the type
  std::string_view why;  // the reason for no dtype, one phrase
};

// Reads a datatype message. Errc::unsupported: it is broken.
Result<Hdf5Type> read_hdf5_type(Hdf5Fields message);

// Reads a dataspace message; nothing: the dataset has no elements and no shape. Errc::unsupported: it is broken.
Result<std::optional<Shape>> read_hdf5_shape(Hdf5Fields message);

// Returns the type of opaque elements for the attribute `dtype` that Keras writes, such as "bfloat16".
std::optional<DType> named_hdf5_type(std::string_view name, std::uint64_t bytes);

}  // namespace weft
