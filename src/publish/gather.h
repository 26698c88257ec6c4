// Which files a publish takes, and how each is opened.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "os/sys.h"
#include "weft/manifest.h"
#include "weft/result.h"

namespace weft {

struct SourceFile {
  std::string path;        // File::path: its place in the version
  std::string where;       // its place on disk, as the user knows it
  std::uint64_t size = 0;  // bytes, when it was found
  // Opens a file that this process may not open by itself: another one does, with its own rights. Empty: opened by
  // `where`. One thread at a time.
  std::function<Result<Fd>()> open = {};
  // Who gives the file away: it may become the store's if it is his (weft/publish.h, Take). None: it is copied.
  std::optional<uid_t> giver = {};
  bool linked = false;  // as ImportOptions::linked
  FileRole role = FileRole::published;
};

// Sorted by role, then `path`. A path that is a file gives its base name; a directory (or a link to one) gives its
// contents, whole, at the version's root. Inside, links to regular files are followed; links to anything else, and what
// is neither file nor directory, are refused. Directories named .git and .cache/huggingface are left out. Refused too:
// two files with one path, a file where another needs a directory, a path that no version can hold, nothing to publish
// at all, and a directory that holds the store at `store_path`.
Result<std::vector<SourceFile>> gather_sources(std::span<const std::string> paths, const std::string& store_path);

// The same promises for files that somebody else has found: whatever their paths are.
Result<std::vector<SourceFile>> check_sources(std::vector<SourceFile> files);

Result<Fd> open_to_read(const std::string& where);  // without blocking on what is no regular file
// The same, of a source that is a regular file; `seen` receives what fstat says.
Result<Fd> open_source(const SourceFile& file, struct stat& seen);

// Errc::changed when the file is another, or was written to, between two stats.
// `taken`: it got a second name from this process, which counts as no change.
Status check_unchanged(const std::string& where, const struct stat& before, const struct stat& after,
                       bool taken = false);

}  // namespace weft
