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

// Returns the other processes that use this mount, by pid: an open file, a mapping, the working directory or the root.
// Only root sees the processes of all users. No request reaches the mount's server, so a hung server delays nothing.
std::vector<MountUser> mount_users(const WeftMount& mount);

// "python3 (pid 7), bash (pid 9) and 2 more", without control characters; "" for no users.
std::string describe_users(const std::vector<MountUser>& users);

}  // namespace weft
