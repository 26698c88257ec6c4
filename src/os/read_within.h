// Reads a file that may never answer, such as a file of a FUSE mount whose server is stopped.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "weft/result.h"

namespace weft {

// Returns the first `bytes_max` bytes of a file, or Errc::busy if the read takes longer than `limit`. With 0, the file
// is opened and not read. A child process reads, and is killed at the limit. A thread (base/bounded_calls.h) could not
// be killed: while it waits for the FUSE server it keeps the mount busy, and `weft umount` of a hung mount would fail
// as "in use".
Result<std::string> read_file_within(const std::string& path, std::size_t bytes_max, std::chrono::milliseconds limit);

}  // namespace weft
