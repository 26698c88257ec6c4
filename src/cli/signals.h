// Signals of the process: what asks to stop, and what a damaged index raises.
#pragma once

#include <atomic>

namespace weft {

// The SIGINT, SIGTERM or SIGHUP that arrived after catch_interrupts(); 0 while none did.
const std::atomic<int>& interrupt_signal();

// From now on those set interrupt_signal(); a second one ends the process at once.
void catch_interrupts();

// A fault in memory means that the mapped index is damaged (LMDB does not check it): says so and exits 1. Left to the
// sanitizers where the program is built with them.
void explain_faults();

// A closed pipe ends the process quietly, also where the parent had it ignored.
void die_of_closed_pipes();

}  // namespace weft
