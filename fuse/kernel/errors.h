// Maps weft's error codes to errno values.
#pragma once

#include "weft/result.h"

namespace weft {

int errno_of(Errc code);
// Returns the errno of the system call that failed, if there was one, for answers about drafts.
int errno_of(const Error& error);

// True for faults of the store or of weft, false for answers that callers expect (not found, read-only).
bool is_fault(Errc code);

}  // namespace weft
