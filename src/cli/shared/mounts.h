// The programs that mount and unmount, and the paths of versions in mounts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/shared/environment.h"
#include "os/mounts.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Finds the program `name` as find_program() of os/programs.h does, from this program's path and the environment's
// PATH.
std::optional<std::string> find_program(const CliEnvironment& environment, const std::string& name);

// Returns the directory of a version in models/ or datasets/ of a mount of the store; "" if the store is not mounted.
std::string mounted_path(Store& store, std::string_view model, std::uint64_t number);
// The reverse: returns the MODEL[@V] of a path in a mount of the store, of a version or of a file in it
// (publish/mounted_specs.h). Errc::not_found: the path is in no such mount, is above all models, or is
// gone. If its model was renamed, the message has the new name.
Result<std::string> spec_at(Store& store, const std::string& path);

}  // namespace weft
