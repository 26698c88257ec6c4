// A directory below tmp/ for one running import or gc. A lock tells whether its owner lives.
#pragma once

#include <memory>
#include <string>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

class TempArea {
 public:
  static Result<std::unique_ptr<TempArea>> make(const SafePath& store_path);
  // The directory `path` itself, whose parent is there. Errc::busy: its owner lives.
  static Result<std::unique_ptr<TempArea>> make_at(const SafePath& path);
  ~TempArea();  // removes it with all that is in it
  TempArea(const TempArea&) = delete;
  TempArea& operator=(const TempArea&) = delete;

  const SafePath& path() const { return path_; }

 private:
  TempArea(SafePath path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  static Result<Fd> claim(const SafePath& path);
  SafePath path_;
  Fd lock_;
};

// Takes over the directory `path` if its owner died, and removes it. False: the owner lives. With `dry_run` nothing
// goes.
Result<bool> remove_if_stale(const SafePath& path, bool dry_run);

}  // namespace weft
