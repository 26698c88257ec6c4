// Where the files below new/ lie: the directory and the name of each number (weft/programs/vfs.h). A number holds the
// inode number of the file. A place is out of date once another mount of this store has moved the file. Any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "weft/programs/vfs.h"
#include "weft/result.h"

namespace weft {

struct DraftFound {
  Ino ino = 0;
  struct stat st {};
  std::uint64_t generation = 0;  // tells drafts apart that have the same inode number after each other
};

// The failure for a number whose place is unknown or out of date: Errc::changed.
Error draft_moved();

class DraftPlaces {
 public:
  struct Place {
    Ino dir = 0;
    std::string name;
  };

  // `root`: the facts of the directory that is new/.
  explicit DraftPlaces(const struct stat& root) : root_(root) {}

  Ino number_of(const struct stat& st) const;
  // Records the place of an entry of `dir`. Fails if the entry is on another file system (EXDEV), or if its inode
  // number is too large for a number (EOVERFLOW).
  Result<DraftFound> found(const struct stat& st, Ino dir, const std::string& name);
  void forget(Ino ino);

  // These fail with draft_moved(). A path has at most limits::kPathComponentsMax components (ELOOP).
  Result<Place> place(Ino ino) const;  // not of new/ itself
  Result<Ino> parent(Ino ino) const;   // kRootIno for new/ itself
  // The path from new/ down, as "org/m"; "" for new/ itself.
  Result<std::string> path(Ino ino) const;

 private:
  const struct stat root_;
  mutable Mutex mutex_;
  std::unordered_map<Ino, Place> places_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
