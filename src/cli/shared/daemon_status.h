// The status of a store's daemon.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/shared/context.h"

namespace weft {

struct DaemonStatus {
  bool runs = false;
  std::string json;                // "" if the daemon does not answer
  std::vector<std::string> lines;  // "key: value", without empty values
};
DaemonStatus ask_daemon(const Context& context, std::chrono::milliseconds patience);

}  // namespace weft
