// The program mount.weft, with what it needs from outside as arguments.
#pragma once

#include <iosfwd>
#include <span>

namespace weft {

// `arguments` without the program's name. Returns the exit status: 0 mounted, 1 failed, 2 bad usage.
int run_mount(std::span<const char* const> arguments, std::ostream& out, std::ostream& err);

}  // namespace weft
