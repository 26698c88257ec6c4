// Reading a file that may never answer, such as one of a FUSE mount whose server is stopped.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "weft/result.h"

namespace weft {

// The first `bytes_max` bytes of a file. Errc::busy when they are not all there within `limit`. A process of its own
// reads, and is left behind if need be: the kernel lets no thread go that waits for a FUSE server to answer, so that a
// thread of this process would keep it from ending.
Result<std::string> read_file_within(const std::string& path, std::size_t bytes_max, std::chrono::milliseconds limit);

}  // namespace weft
