// Captures libfuse's messages, the only place where it says why something failed. Any thread.
#pragma once

#include <string>

namespace weft {

// Redirects libfuse's messages to the log.
void keep_libfuse_messages();
std::string last_libfuse_message();

}  // namespace weft
