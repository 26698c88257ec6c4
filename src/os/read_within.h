// Reading a file that may never answer, such as one of a FUSE mount whose server is stopped.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "weft/result.h"

namespace weft {

// The first `bytes_max` bytes of a file. Errc::busy when they are not all there within `limit`. A process of its own
// reads, and is killed at the limit. A thread (base/bounded_calls.h) cannot be: while it waits for the FUSE server it
// holds the mount, so that `weft umount` of a mount that does not answer would fail as "in use".
Result<std::string> read_file_within(const std::string& path, std::size_t bytes_max, std::chrono::milliseconds limit);

}  // namespace weft
