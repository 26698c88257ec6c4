// The walk over the files below a directory: depth first, in the order of names. It holds each directory by a
// descriptor and follows no link, so that users who rename and link files meanwhile cannot lead it elsewhere.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

// Valid during a call.
struct TreeEntry {
  int directory = -1;  // the directory of the entry, open for reading
  std::string name;
  std::string path;       // below the root of the walk
  std::size_t depth = 0;  // 0: the entry is in the root
  struct stat st {};      // of the entry itself, not of a link's target
};

// The next step of the walk after a visit. `enter`: enters the entry if it is a directory. `end`: ends with success.
enum class WalkNext : std::uint8_t { enter, pass, end };

struct TreeWalk {
  explicit TreeWalk(std::size_t entries) : entries_max(entries) {}

  // Called for each entry, before the entries below it. An error ends the walk.
  std::function<Result<WalkNext>(const TreeEntry& entry)> visit;
  // Called after the entries of each directory, with their sorted names. `entry`: the directory; null for the root.
  std::function<Status(const TreeEntry* entry, int directory, const std::vector<std::string>& names)> leave = {};
  // Opens a directory; empty: openat(2).
  std::function<Result<Fd>(const TreeEntry& entry)> open = {};
  // Decides about an entry that cannot be examined or entered, or that is too deep: an error ends the walk, else it
  // goes on with the next entry. Empty: each error ends it.
  std::function<Status(const Error& error)> failed = {};
  std::size_t components_max = limits::kPathComponentsMax;  // of a path; longer ones: Errc::invalid, through `failed`
  std::size_t entries_max;                                  // of the whole walk; more: Errc::invalid
};

// TreeWalk::failed of a walk that leaves out what it cannot examine.
inline Status pass_failed(const Error&) {
  return {};
}

// Walks over the entries below `root`, a directory open for reading whose read position is at its begin. `where` begins
// the messages.
Status walk_tree(const Fd& root, const std::string& where, const TreeWalk& walk);

}  // namespace weft
