// Reports the daemon's state to systemd (sd_notify(3)).
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Sends `state`: lines such as "READY=1", "STOPPING=1" or "STATUS=…". `socket` is $NOTIFY_SOCKET; does nothing if it is
// empty.
void notify(const std::string& socket, std::string_view state);

}  // namespace weft
