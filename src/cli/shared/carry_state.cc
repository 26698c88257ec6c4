#include "cli/shared/carry_state.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <span>

#include "base/limits.h"
#include "base/sha256.h"
#include "os/tree_walk.h"

namespace weft {

Result<DirectoryState> state_of_directory(const std::string& path) {
  WEFT_TRY(const Fd root, open_file(path, O_RDONLY | O_DIRECTORY));
  DirectoryState state;
  Sha256 hash;
  TreeWalk walk(limits::kDraftEntriesMax);
  walk.failed = pass_failed;
  walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
    const bool is_directory = S_ISDIR(entry.st.st_mode);
    std::string line = fmt::format("{} {:o}", entry.path, entry.st.st_mode);
    if (!is_directory)
      line += fmt::format(" {} {} {} {}", entry.st.st_ino, entry.st.st_size, nanoseconds(entry.st.st_mtim),
                          nanoseconds(entry.st.st_ctim));
    line += '\0';
    hash.update(std::as_bytes(std::span(line)));
    if (!is_directory) ++state.files;
    return WalkNext::enter;
  };
  WEFT_CHECK(walk_tree(root, path, walk));
  state.digest = hash.finish();
  return state;
}

}  // namespace weft
