// Users and groups of this machine by name and by number, as its name service (nsswitch.conf(5)) knows them. A static
// program reads /etc/passwd and /etc/group instead: the modules of the name service are shared libraries.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// Errc::invalid: no user has this name. The message says where users were looked for. Any other: the name service
// fails.
Result<uid_t> user_id(const std::string& name);
// Errc::invalid, as user_id().
Result<gid_t> group_id(const std::string& name);
// Returns the name of a user, or nullopt if there is none.
std::optional<std::string> name_of_user(uid_t uid);
// Returns `gid` and the groups that a login of the user adds, or an empty list if the user has no name.
std::vector<gid_t> login_groups(uid_t uid, gid_t gid);

// Returns the ids of a user, with the groups that a login gets.
UserIds with_groups(uid_t uid, gid_t gid);
// Returns the name of a user, or the uid in decimal digits if the system has no name that a record may hold.
std::string user_name(uid_t uid);

}  // namespace weft
