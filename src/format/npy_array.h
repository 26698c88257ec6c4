// An array as an npy file and a member of an npz file have it: a header, then the elements.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

struct NpyArray {
  DType dtype = DType::npy_other;  // npy_other: only the dict describes the elements
  Shape shape;
  bool fortran_order = false;  // false below two dimensions, where it makes no difference
  std::string dict;            // the header's dict, as FoundTensor::descr
  Range data;                  // the elements
};

bool has_npy_magic(std::span<const std::byte> head);

// Reads the header of a file of versions 1.0, 2.0 and 3.0. `bytes_may_follow`: the file may go on after the array.
// Errc::unsupported: numpy reads the file and weft does not, such as an array of Python objects. Errc::invalid: numpy
// refuses the file too.
Result<NpyArray> read_npy_array(ByteSource& file, bool bytes_may_follow);

}  // namespace weft
