// A temporary directory of one running import or gc. A lock in it shows that its owner is alive.
#pragma once

#include <memory>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

class TempArea {
 public:
  static Result<std::unique_ptr<TempArea>> make(const SafePath& store_path);
  // Makes the directory `path`; its parent exists. Errc::busy: it has an owner that is alive.
  static Result<std::unique_ptr<TempArea>> make_at(const SafePath& path);
  ~TempArea();  // removes the directory and its content
  TempArea(const TempArea&) = delete;
  TempArea& operator=(const TempArea&) = delete;

  const SafePath& path() const { return path_; }

 private:
  TempArea(SafePath path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  static Result<Fd> claim(const SafePath& path);
  SafePath path_;
  Fd lock_;
};

// Removes the directory `path` if its owner is dead. False: the owner is alive, or there is no directory. A dry run
// removes nothing.
Result<bool> remove_if_stale(const SafePath& path, bool dry_run);

}  // namespace weft
