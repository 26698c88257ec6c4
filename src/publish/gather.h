// Finds the files of a publish, and opens them.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "os/sys.h"
#include "weft/arrival.h"
#include "weft/content.h"
#include "weft/model/manifest.h"
#include "weft/programs/operations.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

struct SourceFile {
  std::string path;        // File::path: its place in the version
  std::string where;       // its place on disk, as the user knows it
  std::uint64_t size = 0;  // bytes, when the file was found
  // Opens a file that this process may not open itself: another process does, with its own rights. Empty: `where` is
  // opened. One thread at a time.
  std::function<Result<Fd>()> open = {};
  Take take = Take::copy;  // another value only as take_from() returns it
  uid_t giver = 0;         // with another value: the store's owner, who must own the file too
  FileRole role = FileRole::published;
  bool directory = false;  // an empty directory: has only `path` and `where`, and is never opened
  // MODEL@N and a path in it, which `path` gets the content of: a file of a stored version, which is never opened. "":
  // another file.
  std::string stored = {}, stored_path = {};
  std::optional<Digest> expected = {};  // the plain SHA-256 of a file that arrives; the import fails if it is another
  AwaitBytes await = {};                // set for such a file
};

struct GatheredFiles {
  std::vector<SourceFile> files;
  std::vector<std::string> left_out;  // a line for the user about each entry that is left out
  std::vector<MovedSource> moved{};   // with Take::move: the files, as they were found
};

struct LinkRule;

// Returns the files of a publish, sorted by role, then `path`. A path that is a file gives its base name; a directory
// (or a link to one) gives all its contents, at the version's root. Inside, links to regular files are followed, and
// `rule` says what becomes of links to directories and of links that lead nowhere; all other links, and entries that
// are neither file nor directory, are refused. Directories named .git and .cache/huggingface are left out, each with a
// line in `rule`. A directory without published entries is a source too. Refused too: two files with one path, a file
// where another needs a directory, a path that no version can hold, an empty publish, and a directory that holds the
// store at `store_path`.
Result<std::vector<SourceFile>> gather_sources(std::span<const std::string> paths, const std::string& store_path,
                                               LinkRule& rule);
// Refuses such links.
Result<std::vector<SourceFile>> gather_sources(std::span<const std::string> paths, const std::string& store_path);

// Makes the same promises for files that another process found, whatever their paths are.
Result<std::vector<SourceFile>> check_sources(std::vector<SourceFile> files);

// Returns `wanted` if `giver` owns the store, otherwise Take::copy.
Take take_from(uid_t giver, Take wanted, const std::string& store_path);
Result<Fd> open_to_read(const std::string& where);  // does not block on special files
// Opens a source, which must be a regular file; `seen` receives the result of fstat(2).
Result<Fd> open_source(const SourceFile& file, struct stat& seen);

// Removes a source whose version is published, unless it is absent, or a directory with entries. Errc::changed if the
// file was replaced or written to since it was found: it stays, because the version may lack its content.
Status remove_moved(const MovedSource& source);

// Errc::changed if the file was replaced or written to between two stats. `taken`: this process gave it a second name,
// which counts as no change.
Status check_unchanged(const std::string& where, const struct stat& before, const struct stat& after,
                       bool taken = false);
// The same for a source. A source that arrives is written to meanwhile: it has to stay the same file, of one size.
Status check_source(const SourceFile& file, const struct stat& before, const struct stat& after, bool taken = false);

}  // namespace weft
