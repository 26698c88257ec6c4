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
std::string base_name(std::string_view path);
std::string below(const std::string& directory, const std::string& name);
Status check_named(const std::string& where, const std::string& path);  // `path`: File::path
// Requires a regular file, and a path that a version can hold.
Status check_regular(const std::string& where, const std::string& path, mode_t mode);

// The links of one publish, and the entries that it leaves out.
struct LinkRule {
  Links links = Links::refuse;
  std::vector<std::string> skipped{};  // a line for the user about each link or directory that is left out
  std::size_t followed = 0;            // links to directories
};
// Returns the facts of the target for a link that is followed, and those of any other entry itself; nothing for a link
// that is skipped, and for a directory that another program keeps: .git and .cache/huggingface. `path` is the entry's
// place in the version.
Result<std::optional<struct stat>> stat_published(const TreeEntry& entry, const std::string& where,
                                                  std::string_view path, LinkRule& rule);
// Refuses the store (null: there is none), and directories that are too deep.
Status check_directory(const std::string& where, const std::string& path, const struct stat& st,
                       const struct stat* store);

}  // namespace weft
