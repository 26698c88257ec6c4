// Files in memory, without a name in any directory (memfd).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "os/sys.h"

namespace weft {

Result<Fd> memory_file(const std::string& name);  // empty; `name` is for messages
Result<Fd> memory_file(const std::string& name, std::span<const std::byte> bytes);
// Returns the first 4096 bytes that a program wrote into the file; "" if it cannot be read.
std::string message_in(const Fd& file);

}  // namespace weft
