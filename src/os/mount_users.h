// The processes that keep a mount busy, found in /proc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/mounts.h"

namespace weft {

struct MountUser {
  std::uint64_t pid = 0;
  std::string command;
};

// Other processes with an open file, a mapping, the working directory or the root in this mount, by pid. Only root sees
// the processes of all users. The mount itself is asked nothing, so a server that does not answer holds up nobody.
std::vector<MountUser> mount_users(const WeftMount& mount);

// "python3 (pid 7), bash (pid 9) and 2 more", without control characters; "" for no users.
std::string describe_users(const std::vector<MountUser>& users);

}  // namespace weft
