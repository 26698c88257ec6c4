#include "os/processes.h"

#include <fmt/core.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>

namespace weft {

bool is_being_killed(pid_t thread) {
  std::ifstream status(fmt::format("/proc/{}/status", thread));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigPnd:\t") && !line.starts_with("ShdPnd:\t")) continue;
    std::uint64_t pending = 0;
    std::from_chars(line.data() + 8, line.data() + line.size(), pending, 16);
    if ((pending >> (SIGKILL - 1) & 1U) != 0) return true;
  }
  return false;
}

}  // namespace weft
