// Who may ask the daemon for what. By default root and the user that the daemon runs as; others are configured.
#pragma once

#include <sys/types.h>

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "os/unix_socket.h"
#include "weft/result.h"

namespace weft {

struct Grant {
  std::set<uid_t> users;
  std::set<gid_t> groups;
};

// "alice", "1000": users; "@ml", "@100": groups. Errc::invalid for a name that the system does not know.
Result<Grant> parse_grant(std::span<const std::string> who);

// Errc::permission, with who it is and what it may not.
Status check_access(const Grant& grant, const PeerCredentials& peer, std::string_view what);

}  // namespace weft
