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

int main(int argc, char** argv) {
  keep_memory_small();
  weft::die_of_closed_pipes();
  weft::survive_size_limit();
  weft::explain_faults();
  weft::raise_file_limit();
  weft::CliEnvironment environment{.out = std::cout,
                                   .err = std::cerr,
                                   .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                                   .columns = terminal_columns,
                                   .variable = variable,
                                   .is_root = weft::own_user() == 0,
                                   .program_directory = weft::own_program_directory(),
                                   .version = weft::version_text(),
                                   .interrupt = weft::interrupt_signal(),
                                   .catch_interrupts = weft::catch_interrupts};
  return weft::run_weft({argv + 1, argv + argc}, environment);
}
