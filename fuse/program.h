// The program mount.weft, callable from a main function.
#pragma once

#include <span>

namespace weft {

// Runs mount.weft as this process. `arguments` exclude the program's name. Returns the exit status for mount(8): 0
// mounted, 1 wrong usage, 32 failed. A process of the mount that this starts later is called "mount.weft" (argv[0]).
int mount_main(std::span<const char* const> arguments);

}  // namespace weft
