// The programs that mount and unmount.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/shared/environment.h"
#include "os/mounts.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// `name` beside this program or in the sbin beside its directory, then along PATH, then in /usr/sbin and /sbin.
std::optional<std::string> find_program(const CliEnvironment& environment, const std::string& name);

// `words`: the program's path, then its arguments. Runs it and waits: its exit code, or 128 + the signal that ended it.
Result<int> run_program(std::vector<std::string> words);
// The same, with the program's stderr in `errors` (up to 4 KiB) and not on ours.
Result<int> run_program(std::vector<std::string> words, std::string& errors);
// The directory of a version in models/ or datasets/ of a mount of the store; "" where it is not mounted.
std::string mounted_path(Store& store, std::string_view model, std::uint64_t number);
// Runs it in place of this process; returns only when that fails.
Error become_program(std::vector<std::string> words);

}  // namespace weft
