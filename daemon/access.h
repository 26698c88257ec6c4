// Access control for requests. Root and the daemon's user may send all requests; the configuration grants rights to
// other users and groups.
#pragma once

#include <sys/types.h>

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "os/unix_socket.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct Grant {
  std::set<uid_t> users;
  std::set<gid_t> groups;
  std::string setting = {};  // the setting of weft.conf that grants it, such as "control.publish"
};

// Parses users ("alice", "1000") and groups ("@ml", "@100"). Errc::invalid: a name that the system does not know.
Result<Grant> parse_grant(std::span<const std::string> who);

// Errc::permission, with the user, the action and the setting in the message, if `peer` lacks the right. `what` is the
// action.
Status check_access(const Grant& grant, const PeerCredentials& peer, std::string_view what);

// The same for what no setting grants: for root and the daemon's user.
Status check_owner(const PeerCredentials& peer, std::string_view what);

// Returns the author of the changes that `peer` asks for, without the node.
Author author_of(const PeerCredentials& peer);

}  // namespace weft
