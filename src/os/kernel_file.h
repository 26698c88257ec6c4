// Files that the kernel makes when they are read, below /proc and /sys.
#pragma once

#include <cstdint>
#include <string>

#include "weft/result.h"

namespace weft {

// Reads the file to its end: its size is not known before. Errc::invalid: it has more than `bytes_max` bytes.
Result<std::string> read_kernel_file(const std::string& path, std::uint64_t bytes_max);

}  // namespace weft
