// Where weft's failures become errno values.
#pragma once

#include "weft/result.h"

namespace weft {

int errno_of(Errc code);

// Faults of the store or of ours, as opposed to answers that callers expect (not there, read-only).
bool is_fault(Errc code);

}  // namespace weft
