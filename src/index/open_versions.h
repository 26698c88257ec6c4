// index/open: the versions that somebody reads for long. Byte V of the file, which has none, stands for version V. A
// reader has a shared open-file-description lock on it; gc reaps a removed version only with the exclusive one, so that
// all that the version needs stays whole for as long as a reader has it, whatever became of its name.
//
// A reader locks, and then looks whether the version is still there. gc locks, and then takes it out of the index.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/pack.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Any thread.
class OpenVersions : public std::enable_shared_from_this<OpenVersions> {
 public:
  // Makes the file; fine when it is there.
  static Status create(const SafePath& index_dir);
  static Result<Fd> open_file_in(const SafePath& index_dir);
  // `inherited`: a description of the file that is other processes' too; it is not closed with this. -1: none. Then
  // this has one of its own, and its locks end with it.
  static Result<std::shared_ptr<OpenVersions>> open(const SafePath& index_dir, int inherited);

  // Errc::busy: gc reaps it at this moment. A description has one lock for all who hold a byte through it: they are
  // counted here.
  Result<VersionHold> hold(VersionId version);
  // Whether one who holds it knows that it was there once it was locked; the caller holds it. Later holders then need
  // not look.
  bool is_sure(VersionId version) const;
  void make_sure(VersionId version);
  // As Store::take_over_holds.
  Result<std::vector<VersionHold>> take_over(std::span<const VersionId> versions);
  // Whether anybody holds it, through whichever description.
  Result<bool> is_open(VersionId version) const;

  // For gc and rebuilds, which take away what nobody has open.
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

// Versions that nobody has open, nor will while this lives. One thread.
class OpenVersions::Claims {
 public:
  // False: somebody has it open. Says of one version always the same.
  Result<bool> claim(VersionId version);

 private:
  friend class OpenVersions;
  Claims(SafePath path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  SafePath path_;
  Fd fd_;
  std::unordered_map<VersionId, bool> claimed_;
};

}  // namespace weft
