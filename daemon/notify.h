// Tells systemd how the daemon does (sd_notify(3)); nothing where nobody asked for it.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// `state` is "READY=1", "STOPPING=1", "STATUS=…", lines of such. `socket` is $NOTIFY_SOCKET; empty: nobody asked.
void notify(const std::string& socket, std::string_view state);

}  // namespace weft
