// Mounted weft file systems, and the programs that mount and unmount them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.h"
#include "weft/result.h"

namespace weft {

struct WeftMount {
  std::string directory;
  std::string store;  // as mount.weft was given it, absolute
};

// The weft mounts in a text of the form of /proc/self/mountinfo, in its order.
std::vector<WeftMount> parse_mountinfo(std::string_view text);
Result<std::vector<WeftMount>> weft_mounts();

// The real path, also of a mount point whose server is dead (which no stat of it gets past).
Result<std::string> mount_point_path(const std::string& directory);

// `name` beside this program or in the sbin beside its directory, then along PATH, then in /usr/sbin and /sbin.
std::optional<std::string> find_program(const CliEnvironment& environment, const std::string& name);

// `words`: the program's path, then its arguments. Runs it and waits: its exit code, or 128 + the signal that ended it.
Result<int> run_program(std::vector<std::string> words);
// Runs it in place of this process; returns only when that fails.
Error become_program(std::vector<std::string> words);

}  // namespace weft
