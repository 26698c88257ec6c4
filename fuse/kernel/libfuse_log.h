// What libfuse complains about: it has no other way to say why something failed. Any thread.
#pragma once

#include <string>

namespace weft {

// From now on its messages go to the log.
void keep_libfuse_messages();
std::string last_libfuse_message();

}  // namespace weft
