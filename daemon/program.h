// The program weftd, callable from a test.
#pragma once

#include <ostream>
#include <span>
#include <string>

namespace weft {

// The exit code: 0 ended as told, 1 failed, 2 bad usage.
int run_weftd(std::span<const char* const> arguments, const std::string& notify_socket, std::ostream& out,
              std::ostream& err);

}  // namespace weft
