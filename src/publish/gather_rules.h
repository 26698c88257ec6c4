// Rules that the walks share: which entries of a directory may be published.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/tree_walk.h"
#include "weft/programs/operations.h"
#include "weft/result.h"

namespace weft {

std::string_view kind_of(mode_t mode);  // "a regular file", "a fifo"
bool left_out(std::string_view path);   // true for directories of other programs, which are not published
std::string base_name(std::string_view path);
std::string below(const std::string& directory, const std::string& name);
Status check_named(const std::string& where, const std::string& path);  // `path`: File::path
// Requires a regular file, and a path that a version can hold.
Status check_regular(const std::string& where, const std::string& path, mode_t mode);

// The links of one publish.
struct LinkRule {
  Links links = Links::refuse;
  std::vector<std::string> skipped{};  // a line for the user about each
  std::size_t followed = 0;            // links to directories
};
// Returns the facts of the target for a link that is followed, and those of any other entry itself; nothing for a link
// that is skipped.
Result<std::optional<struct stat>> stat_published(const TreeEntry& entry, const std::string& where, LinkRule& rule);
// Refuses the store (null: there is none), and directories that are too deep.
Status check_directory(const std::string& where, const std::string& path, const struct stat& st,
                       const struct stat* store);

}  // namespace weft
