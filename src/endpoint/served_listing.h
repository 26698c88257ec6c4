// A listing of a directory of a version, which continues in a later request where the last one ended.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "endpoint/served_file.h"
#include "weft/programs/vfs.h"
#include "weft/result.h"

namespace weft {

// One thread. Holds no state of the store, and waits if a manifest has to be fetched.
class ServedListing {
 public:
  struct Options {
    bool recursive = false;  // the entries of a directory follow the directory
    bool digests = true;     // files have their SHA-256
  };
  // `directory` is at `path` of its version.
  ServedListing(Vfs& vfs, Ino directory, std::string path, const Options& options);

  // Continues after the entry at which an earlier listing of this directory had this cursor. Errc::invalid: no listing
  // has it. It comes from the client.
  Status seek(std::string_view cursor);
  // Returns the next entry; nothing at the end.
  Result<std::optional<ServedFile>> next();
  // Returns where the listing stands, as text for a URL.
  std::string cursor() const;

 private:
  struct Level {
    Ino directory = 0;
    std::string path;
    ListPlace place = 0;  // of the last entry that was returned
    std::vector<DirEntry> entries = {};
    std::size_t index = 0;  // of the next one among these
    bool is_last = false;   // no entries follow them
  };
  Status fill(Level& level);
  Result<ServedFile> served(const Level& level, const DirEntry& entry);

  Vfs& vfs_;
  const std::string root_;  // path of the directory
  const Options options_;
  std::vector<Level> levels_;  // the open directories, the innermost last
};

}  // namespace weft
