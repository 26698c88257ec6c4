// A file that lies in memory and in no directory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "os/sys.h"

namespace weft {

Result<Fd> memory_file(const std::string& name);  // empty; `name` is for messages
Result<Fd> memory_file(const std::string& name, std::span<const std::byte> bytes);
// What a program wrote into it, from the beginning, at most 4096 bytes; "" if it cannot be read.
std::string message_in(const Fd& file);

}  // namespace weft
