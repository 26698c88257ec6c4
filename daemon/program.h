// The program weftd, callable from a test.
#pragma once

#include <ostream>
#include <span>
#include <string>

namespace weft {

// Returns the exit code: 0 after a clean shutdown, 1 after a failure, 2 for bad usage.
int run_weftd(std::span<const char* const> arguments, const std::string& notify_socket, std::ostream& out,
              std::ostream& err);

}  // namespace weft
