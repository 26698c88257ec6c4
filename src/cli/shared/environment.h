// The process environment of `weft`: streams, terminal, environment variables, signals. Tests pass their own.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace weft {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

struct CliEnvironment {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
  std::function<unsigned()> columns = [] { return 80U; };  // returns the current width of the terminal
  std::function<std::optional<std::string>(const std::string&)> variable = [](const std::string&) {
    return std::optional<std::string>();
  };
  bool is_root = false;
  std::string config_file = "/etc/weft/weft.conf";  // configuration of this machine's weftd
  std::string program = {};                         // path of this program; "" if unknown
  std::string_view version = WEFT_VERSION;          // what --version prints
  const std::atomic<int>& interrupt;                // number of the signal that interrupts; 0 before
  std::function<void()> catch_interrupts = [] {};   // called before work that must clean up after an interrupt
};

}  // namespace weft
