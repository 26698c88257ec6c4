// Signals of the process: interrupts, memory faults of a damaged index, closed pipes.
#pragma once

#include <atomic>

namespace weft {

// Returns the SIGINT, SIGTERM or SIGHUP that arrived after catch_interrupts(); 0 if none did.
const std::atomic<int>& interrupt_signal();

// Makes the first of these signals set interrupt_signal(). A second one of the same number ends the process at once.
void catch_interrupts();

// Makes a memory fault print that the index looks damaged, and exit 1: LMDB does not check its mapped pages. Does
// nothing in a build with sanitizers, which report faults themselves.
void explain_faults();

// Makes a closed pipe end the process quietly, even if the parent process ignored SIGPIPE.
void die_of_closed_pipes();

}  // namespace weft
