// The directory in which one pull receives files until their version is published: PULLS/KEY, usually STORE/pulls/KEY.
// It is no part of the store, and outlives a pull that fails: the next one with this key receives only the rest.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::string_view kPullsFolder = "pulls";  // in STORE
inline constexpr std::string_view kPullFiles = "files";    // in PULLS/KEY: a directory with the files that are received
inline constexpr std::string_view kPullNotes = "notes";    // in PULLS/KEY: a directory with notes about them

// One thread.
class PullArea {
 public:
  // Makes the directory `pulls` unless it exists (its parent does), and the one of `key` in it. Waits while another
  // process has it. Errc::cancelled: `patience` ended the wait.
  static Result<PullArea> open(const SafePath& pulls, const std::string& key, const Patience& patience);
  // Counts as a use of the area, from which on its age is measured.
  ~PullArea();
  PullArea(PullArea&&) noexcept = default;
  PullArea& operator=(PullArea&&) noexcept = default;

  SafePath files() const { return path_ / kPullFiles; }
  SafePath notes() const { return path_ / kPullNotes; }
  Status remove();  // all of it

 private:
  PullArea(SafePath path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  static Result<Fd> claim(const SafePath& path, const Patience& patience);

  SafePath path_;
  Fd lock_;
};

// Removes the areas in `pulls` that no process has used for `kept`. A wrong clock may remove them early: the next pull
// then receives the files again.
Status remove_old_pulls(const SafePath& pulls, std::chrono::seconds kept);

}  // namespace weft
