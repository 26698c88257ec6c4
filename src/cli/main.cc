// The program weft.
#include "cli/program.h"

int main(int argc, char** argv) {
  const std::span<const char* const> all(argv, static_cast<std::size_t>(argc));
  return weft::weft_main(all.subspan(all.empty() ? 0 : 1));
}
