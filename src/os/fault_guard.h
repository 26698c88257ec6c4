// Survives faults of C code in mapped files with damaged bytes. A library that trusts its file (LMDB) would follow a
// wild offset, and the fault would end the process.
//
// The first guard of a process installs handlers of SIGSEGV and SIGBUS for good. A fault outside of every guard goes to
// the earlier handlers: it is a bug and not a damaged file.
#pragma once

#include <type_traits>

namespace weft {

namespace fault_guard {
bool run(void (*body)(void*), void* argument);
}

// Runs `body`. Returns false if a fault or escape_fault_guard() ended it early. Control then leaves `body` as by
// longjmp, without cleanup: `body` must call C code only and own no object with a destructor. Any thread; costs
// nanoseconds.
template <class Body>
bool survive_faults(Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  return fault_guard::run([](void* it) { (*static_cast<Plain*>(it))(); }, &body);
}

// For a library's hook of failed assertions. Leaves the innermost guard of this thread, or returns if there is none.
void escape_fault_guard();

}  // namespace weft
