// The use of the machine by this process, in the units of Prometheus. Reads /proc. Any thread.
#pragma once

#include <cstdint>

#include "weft/result.h"

namespace weft {

struct ProcessUsage {
  double cpu_seconds = 0;    // user and system time
  double start_seconds = 0;  // start of the process, in seconds since 1970
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_fds = 0;
  std::uint64_t max_fds = 0;  // soft limit
};

// Errc::invalid: a file of /proc has another layout. Other errors: /proc is not mounted or cannot be read.
Result<ProcessUsage> process_usage();

}  // namespace weft
