// The header of a .npy file: the text of a Python dict with the keys 'descr', 'fortran_order' and 'shape'.
#pragma once

#include <cstdint>
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

// Parses a text that is such a dict, apart from white space. Views point into `text`. No expression is evaluated. Read
// are strings without escapes, decimal integers (also with Python 2's suffix L), True, False, None, lists and tuples.
// Errc::unsupported: a text with other literals, comments or white space, which Python may read. Errc::invalid: any
// other text.
Result<NpyHeader> parse_npy_header(std::string_view text);

// The element type that a descr names. Errc::unsupported: a type that weft does not know.
struct NpyElement {
  DType dtype = DType::npy_other;  // also npy_other for plain types in big-endian order
  std::uint64_t bytes = 0;
  bool pickled = false;  // Python objects, whose size the file does not say
};
Result<NpyElement> parse_npy_descr(std::string_view descr);

}  // namespace weft
