// What a store's daemon says of itself.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/shared/context.h"

namespace weft {

struct DaemonStatus {
  bool runs = false;
  std::string json;                // "" when it does not answer
  std::vector<std::string> lines;  // "key: value"; those that say nothing are left out
};
DaemonStatus ask_daemon(const Context& context, std::chrono::milliseconds patience);

}  // namespace weft
