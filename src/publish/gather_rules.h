// What may be published of what lies in a directory: the rules that the walks share.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

std::string_view kind_of(mode_t mode);  // "a regular file", "a fifo"
bool left_out(std::string_view path);   // a directory of other programs' own, which is not published
std::string base_name(std::string_view path);
std::string below(const std::string& directory, const std::string& name);
Status check_named(const std::string& where, const std::string& path);  // `path`: File::path
// A regular file, and a path that a version can hold.
Status check_regular(const std::string& where, const std::string& path, mode_t mode);
// Not the store (null: there is none), and not too deep.
Status check_directory(const std::string& where, const std::string& path, const struct stat& st,
                       const struct stat* store);

}  // namespace weft
