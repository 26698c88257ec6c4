// Faults of C code over mapped files whose bytes are damaged: a library that trusts its file (LMDB) meets a wild offset
// and would take the process with it.
//
// The first guard of a process installs handlers of SIGSEGV and SIGBUS, for good. A fault outside of every guard goes
// to the handlers that were there before: it is nobody's damage, but a bug.
#pragma once

#include <type_traits>

namespace weft {

namespace fault_guard {
bool run(void (*body)(void*), void* argument);
}

// Runs `body`. False: a fault, or escape_fault_guard(), ended it in the middle. It is left as by longjmp: what it has
// begun stays as it is, so that it must call C code only and hold nothing that a destructor would let go. Any thread;
// costs nanoseconds.
template <class Body>
bool survive_faults(Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  return fault_guard::run([](void* it) { (*static_cast<Plain*>(it))(); }, &body);
}

// For a library's hook of failed assertions: leaves the guard that this thread is in; returns when it is in none.
void escape_fault_guard();

}  // namespace weft
