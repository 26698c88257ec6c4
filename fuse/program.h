// The program mount.weft, with what it needs from outside as arguments.
#pragma once

#include <iosfwd>
#include <span>

namespace weft {

// `arguments` exclude the program's name. Returns the exit status for mount(8): 0 mounted, 1 wrong usage, 32 failed.
int run_mount(std::span<const char* const> arguments, std::ostream& out, std::ostream& err);

}  // namespace weft
