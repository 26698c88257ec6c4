// How weft's programs find each other.
#pragma once

#include <optional>
#include <string>

namespace weft {

// Returns the path of program `name`. Searches `own_directory`, the bin/ and sbin/ beside it, the directories of `path`
// (as $PATH), /usr/sbin and /sbin. Pass "" if the own directory is unknown.
std::optional<std::string> find_program(const std::string& name, const std::string& own_directory,
                                        const std::string& path);
std::string own_program_directory();  // "" if unknown

}  // namespace weft
