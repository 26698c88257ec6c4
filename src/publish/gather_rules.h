// Rules that the walks share: which entries of a directory may be published.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "os/tree_walk.h"
#include "weft/result.h"

namespace weft {

std::string_view kind_of(mode_t mode);  // "a regular file", "a fifo"
bool left_out(std::string_view path);   // true for directories of other programs, which are not published
std::string base_name(std::string_view path);
std::string below(const std::string& directory, const std::string& name);
Status check_named(const std::string& where, const std::string& path);  // `path`: File::path
// Requires a regular file, and a path that a version can hold.
Status check_regular(const std::string& where, const std::string& path, mode_t mode);
// Returns the facts of a regular file for a link to it, and those of any other entry itself.
Result<struct stat> stat_published(const TreeEntry& entry, const std::string& where);
// Refuses the store (null: there is none), and directories that are too deep.
Status check_directory(const std::string& where, const std::string& path, const struct stat& st,
                       const struct stat* store);

}  // namespace weft
