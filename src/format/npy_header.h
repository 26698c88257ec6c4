// The header of a .npy file: the text of a Python dict with the keys 'descr', 'fortran_order' and 'shape'.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/dtype.h"
#include "weft/result.h"

namespace weft {

struct NpyHeader {
  std::string_view dict;   // the dict's text, from '{' to '}'
  std::string_view descr;  // "<f4"; empty for a structured type, whose description is a list or a tuple
  bool fortran_order = false;
  Shape shape;
};

// Views point into `text`. Errc::invalid for what is not such a dict alone, white space aside. No expression is
// evaluated: strings without escapes, decimal integers (Python 2's L suffix too), True, False, None, lists, tuples.
Result<NpyHeader> parse_npy_header(std::string_view text);

// What one element is, by its description.
struct NpyElement {
  DType dtype = DType::npy_other;  // npy_other too for plain types whose bytes are in big-endian order
  std::uint64_t bytes = 0;
  bool pickled = false;  // Python objects: the file does not say how many bytes they take
};
Result<NpyElement> parse_npy_descr(std::string_view descr);

}  // namespace weft
