// Which files of an origin the versions of the registry need, for a collection (origin/collect.h). For one thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "origin/collect.h"
#include "origin/dir.h"
#include "origin/needed_files.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// All arguments outlive this.
class VersionNeeds {
 public:
  VersionNeeds(const OriginDir& origin, CollectionOrder& order, const OriginGcOptions& options, Progress& progress);

  // A version that was removed before an announced horizon needs no content any more.
  void follow(std::uint64_t horizon_ns);
  std::uint64_t horizon_ns() const { return horizon_ns_; }  // `horizon_ns` of the options, or a later announced one

  // Adds the files of all versions. Compares the journal with a later state of the registry. Errors as
  // collect_origin().
  Status read_first();
  // Adds the files of versions that the registry has since. Files that were needed before stay needed.
  Status read_again();

  NeededFiles& files() { return files_; }
  const NeededFiles& files() const { return files_; }
  const std::set<Digest>& placed() const { return placed_; }  // needed manifests that have places
  std::uint64_t versions() const { return counted_.size(); }
  std::uint64_t versions_in_grace() const { return in_grace_; }

 private:
  bool needs_content(const VersionRow& row) const;
  Status need(const std::vector<VersionRow>& rows);
  Result<bool> need_blobs(const VersionRow& row);
  Result<bool> need_unplaced(const VersionRow& row, bool no_places);

  const OriginDir& origin_;
  CollectionOrder& order_;
  Progress& progress_;
  std::uint64_t horizon_ns_;
  std::set<std::pair<std::string, Uuid>> purged_;  // model and identity: a version may have got another number
  NeededFiles files_;
  // Versions that the report counts. An identity alone could be forged.
  std::set<std::tuple<Uuid, Digest, std::string, std::uint64_t>> counted_;
  std::uint64_t in_grace_ = 0;
  std::set<Digest> listed_;  // manifests whose blobs are in files_
  std::set<Digest> placed_;  // those among them that have places
};

}  // namespace weft
