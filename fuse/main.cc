#include <iostream>
#include <span>

#include "fuse/program.h"
#include "os/sys.h"

int main(int argc, char** argv) {
  weft::survive_size_limit();
  const std::span<const char* const> all(argv, static_cast<std::size_t>(argc));
  return weft::run_mount(all.subspan(all.empty() ? 0 : 1), std::cout, std::cerr);
}
