#include <cstdlib>
#include <iostream>
#include <span>

#include "daemon/program.h"
#include "os/sys.h"

int main(int argc, char** argv) {
  weft::survive_size_limit();
  const std::span<const char* const> all(argv, static_cast<std::size_t>(argc));
  const char* socket = std::getenv("NOTIFY_SOCKET");
  return weft::run_weftd(all.subspan(all.empty() ? 0 : 1), socket == nullptr ? "" : socket, std::cout, std::cerr);
}
