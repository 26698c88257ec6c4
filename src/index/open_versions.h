// index/open: locks on versions that are open for long. The file is empty; byte V stands for version V. A reader holds
// a shared open-file-description lock on it. gc reaps a removed version only with the exclusive lock, so that the
// version's content stays complete as long as a reader has it open, even if its name is gone.
//
// A reader locks first, and then checks that the version still exists. gc locks first, and then erases it from the
// index.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/bytes/pack.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Any thread.
class OpenVersions : public std::enable_shared_from_this<OpenVersions> {
 public:
  static Result<Fd> open_file_in(const SafePath& index_dir);
  // `inherited`: a descriptor of this file whose description is shared with other processes. It is duplicated, so the
  // caller keeps it, and its locks outlive this object. -1: the object opens its own description, whose locks end with
  // it.
  static Result<std::shared_ptr<OpenVersions>> open(const SafePath& index_dir, int inherited);

  // Errc::busy: gc is reaping the version. A description has one lock per byte, so holders in this process are counted.
  Result<VersionHold> hold(VersionId version);
  // True if a current holder has checked that the version exists, so that other holders need not. The caller holds the
  // version.
  bool is_sure(VersionId version) const;
  void make_sure(VersionId version);
  // As Store::take_over_holds.
  Result<std::vector<VersionHold>> take_over(std::span<const VersionId> versions);
  // True if any process holds the version, through any description.
  Result<bool> is_open(VersionId version) const;

  // For gc and rebuilds, which erase versions that are not open.
  class Claims;
  Result<Claims> begin_claims() const;

 private:
  OpenVersions(SafePath path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status count(VersionId version);
  void let_go(VersionId version);
  VersionHold make_hold(VersionId version);

  const SafePath path_;
  const Fd fd_;
  struct Held {
    std::uint64_t count = 0;
    bool sure = false;
  };
  mutable std::mutex mutex_;
  std::map<VersionId, Held> held_;  // guarded by mutex_
};

// Versions that are not open and cannot be opened as long as this object lives. One thread.
class OpenVersions::Claims {
 public:
  // False if a reader has the version open. Repeated calls return the same answer.
  Result<bool> claim(VersionId version);

 private:
  friend class OpenVersions;
  Claims(SafePath path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  SafePath path_;
  Fd fd_;
  std::unordered_map<VersionId, bool> claimed_;
};

}  // namespace weft
