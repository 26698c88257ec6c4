// The program weft, callable from a main function.
#pragma once

#include <span>

namespace weft {

// Runs weft as this process, with its streams, terminal, environment and signals. `arguments` exclude the program's
// name. Returns the exit code.
int weft_main(std::span<const char* const> arguments);

}  // namespace weft
