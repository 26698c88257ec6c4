// What `weft` would take from its process: streams, the terminal, the environment, signals. A test makes its own.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

namespace weft {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

struct CliEnvironment {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
  std::function<unsigned()> columns = [] { return 80U; };  // of that terminal, now
  std::function<std::optional<std::string>(const std::string&)> variable = [](const std::string&) {
    return std::optional<std::string>();
  };
  bool is_root = false;
  std::string config_file = "/etc/weft/weft.conf";  // of this machine's weftd
  std::string program_directory = {};               // where this program lies; "" when that is not known
  // The number of the signal that asks to stop; 0 while none does.
  const std::atomic<int>& interrupt;
  std::function<void()> catch_interrupts = [] {};  // called before work that cleans up after itself
};

}  // namespace weft
