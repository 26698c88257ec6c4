// Reaps removed versions that are not open, which frees the content that only they need.
#pragma once

#include <cstdint>
#include <span>

#include "catalog/release.h"
#include "index/open_versions.h"
#include "store/parts/parts.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/gc.h"
#include "weft/store_rows.h"

namespace weft {

// One thread: gc's.
class Reaper {
 public:
  explicit Reaper(StoreParts& parts) : parts_(parts) {}
  // Adds the reaped and the open versions to the report. A dry run only counts them.
  Status reap(const GcOptions& options, Progress& progress, GcReport& report);

 private:
  Status reap_noted(OpenVersions::Claims& claims, Progress& progress, GcReport& report);
  Status release(const ContentRelease& steps, VersionId version, std::uint64_t end, Progress& progress);
  Status forget_noted(const VersionRow& version, const LocalRow& local, GcReport& report);
  Status remove_released(std::span<const Digest> manifests) const;
  Result<VersionId> reap_some(std::span<const VersionId> versions, OpenVersions::Claims& claims, GcReport& report);
  Result<VersionId> count_reapable(std::span<const VersionId> versions, GcReport& report) const;

  StoreParts& parts_;
};

}  // namespace weft
