#include "cli/program.h"

#include <malloc.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "base/version/version.h"
#include "cli/cli.h"
#include "cli/signals.h"
#include "os/programs.h"
#include "os/sys.h"

namespace weft {
namespace {

unsigned terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80U;
}

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Makes malloc return large freed blocks to the system. Else the lists of a large import, with a million tensors, would
// stay in the heap.
void keep_memory_small() {
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 10);
}

}  // namespace

int weft_main(std::span<const char* const> arguments) {
  keep_memory_small();
  die_of_closed_pipes();
  survive_size_limit();
  explain_faults();
  raise_file_limit();
  CliEnvironment environment{.out = std::cout,
                             .err = std::cerr,
                             .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                             .columns = terminal_columns,
                             .variable = variable,
                             .is_root = own_user() == 0,
                             .program = own_program(),
                             .version = version_text(),
                             .interrupt = interrupt_signal(),
                             .catch_interrupts = catch_interrupts};
  return run_weft({arguments.begin(), arguments.end()}, environment);
}

}  // namespace weft
