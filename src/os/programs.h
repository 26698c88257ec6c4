// Where weft's programs find each other.
#pragma once

#include <optional>
#include <string>

namespace weft {

// `name` beside the program that lies in `own_directory`, in the bin/ or sbin/ beside that, along `path` (as $PATH), in
// /usr/sbin or /sbin. "" for an own directory that is not known.
std::optional<std::string> find_program(const std::string& name, const std::string& own_directory,
                                        const std::string& path);
std::string own_program_directory();  // "" when it is not known

}  // namespace weft
