#include "store/collecting/reaper.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "base/limits.h"
#include "catalog/apply.h"
#include "catalog/release.h"
#include "index/open_versions.h"
#include "index/tables.h"
#include "index/version_life.h"

namespace weft {
namespace {

// The results of one batch.
struct Released {
  std::size_t versions = 0;
  std::size_t rows = 0;
  std::vector<Digest> manifests;  // manifests that lost their last version
};

// Erases the rows of a version, all but the inodes of its tensors.
Status forget(Txn& txn, const VersionRow& version, const LocalRow& local, Released& released) {
  WEFT_CHECK(bump_sequence(txn));
  ++released.versions;
  WEFT_TRY(const bool last, forget_version(txn, version, local));
  if (last) released.manifests.push_back(version.manifest);
  return {};
}

Status release_version(Txn& txn, VersionId id, Released& released) {
  WEFT_TRY(const VersionState state, state_of(txn, id));
  if (state != VersionState::unreaped) return {};  // reap_noted() releases it, maybe in a later gc
  WEFT_TRY(const VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(id)));
  WEFT_TRY(const LocalRow local, need_row<LocalRow>(txn, Table::locals, key_of(version.id)));
  released.rows += 2 * local.view_inos.size() + 1;
  for (Ino ino : std::set<Ino>(local.view_inos.begin(), local.view_inos.end())) WEFT_CHECK(release_view(txn, ino));
  return forget(txn, version, local, released);
}

// Claims a removed version unless a reader has it open. The caller holds the writer lock. A version that was undeleted
// since is not claimed: nobody could open it until the end of this gc.
Result<bool> claim(StoreParts& parts, OpenVersions::Claims& claims, VersionId version) {
  WEFT_TRY(Txn txn, parts.index.read());
  WEFT_TRY(const VersionState state, state_of(txn, version));
  if (state != VersionState::unreaped && state != VersionState::releasing) return false;
  return claims.claim(version);
}

Result<std::vector<VersionId>> some_unreaped(Env& env, VersionId from) {
  WEFT_TRY(Txn txn, env.read());
  return noted(txn, kUnreaped, from, limits::kBatchItems);
}

Status release(StoreParts& parts, const ContentRelease& content, VersionId version, std::uint64_t end,
               Progress& progress) {
  for (std::uint64_t at = 0; at < end;) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: gc stopped", parts.path)};
    WEFT_TRY(const WriterLock lock, parts.index.lock());
    Status written = parts.index.write(lock, [&](Txn& txn) -> Status {
      WEFT_TRY(const auto from, note_value(txn, kReleasing, version));
      at = std::min(from.value_or(end) + limits::kBatchRows, end);
      if (!from || *from >= end) return {};
      WEFT_CHECK(content.release(txn, *from, at));
      WEFT_CHECK(set_steps(txn, version, VersionState::releasing, at));
      return bump_sequence(txn);
    });
    WEFT_CHECK(std::move(written));
  }
  return {};
}

Status remove_released(StoreParts& parts, std::span<const Digest> manifests) {
  for (const Digest& manifest : manifests)
    if (!parts.reliances.is_needed(manifest)) WEFT_CHECK(parts.manifests.remove(manifest));
  return {};
}

Status forget_noted(StoreParts& parts, const VersionRow& version, const LocalRow& local, GcReport& report) {
  WEFT_TRY(const WriterLock lock, parts.index.lock());
  Released released;
  Status written = parts.index.write(lock, [&](Txn& txn) -> Status {
    released = {};
    WEFT_TRY(const VersionState state, state_of(txn, version.id));  // the mirror of a registry may undelete it
    return state == VersionState::releasing ? forget(txn, version, local, released) : Status{};
  });
  WEFT_CHECK(std::move(written));
  report.versions_reaped += released.versions;
  return remove_released(parts, released.manifests);
}

// Reaps large versions in batches: first the content that they hold, then, if they are not open, their inodes.
Status reap_noted(StoreParts& parts, OpenVersions::Claims& claims, Progress& progress, GcReport& report) {
  for (VersionId from = 0;;) {
    VersionRow version;
    LocalRow local;
    {
      WEFT_TRY(Txn txn, parts.index.read());
      WEFT_TRY(const std::vector<VersionId> noted_now, noted(txn, kReleasing, from, 1));
      if (noted_now.empty()) return {};
      WEFT_TRY(version, need_row<VersionRow>(txn, Table::versions, key_of(noted_now.front())));
      WEFT_TRY(local, need_row<LocalRow>(txn, Table::locals, key_of(version.id)));
    }
    WEFT_TRY(const VersionContent content, parts.contents.of(version.manifest));
    const ContentRelease steps(version.id, local, content);
    WEFT_CHECK(release(parts, steps, version.id, steps.held_steps(), progress));
    WEFT_TRY(const bool claimed, ([&]() -> Result<bool> {
               WEFT_TRY(const WriterLock lock, parts.index.lock());
               return claim(parts, claims, version.id);
             })());
    if (claimed) WEFT_CHECK(release(parts, steps, version.id, steps.steps(), progress));
    if (claimed) WEFT_CHECK(forget_noted(parts, version, local, report));
    from = version.id + 1;
  }
}

// Reaps one batch of these versions. Returns the id from which the next batch continues.
Result<VersionId> reap_some(StoreParts& parts, std::span<const VersionId> versions, OpenVersions::Claims& claims,
                            GcReport& report) {
  WEFT_TRY(const WriterLock lock, parts.index.lock());
  std::vector<bool> claimed;
  for (const VersionId version : versions) {
    WEFT_TRY(const bool mine, claim(parts, claims, version));
    claimed.push_back(mine);
  }
  Released released;
  std::size_t done = 0;
  Status written = parts.index.write(lock, [&](Txn& txn) -> Status {
    released = {};
    for (done = 0; done < versions.size() && released.rows < limits::kBatchRows; ++done)
      if (claimed[done]) WEFT_CHECK(release_version(txn, versions[done], released));
    return {};
  });
  WEFT_CHECK(std::move(written));
  WEFT_CHECK(remove_released(parts, released.manifests));
  report.versions_reaped += released.versions;
  report.versions_open += static_cast<std::uint64_t>(std::count(claimed.begin(), claimed.begin() + done, false));
  return versions[done - 1] + 1;
}

Result<VersionId> count_reapable(StoreParts& parts, std::span<const VersionId> versions, GcReport& report) {
  for (const VersionId version : versions) {
    WEFT_TRY(const bool open, parts.open_versions->is_open(version));
    ++(open ? report.versions_open : report.versions_reaped);
  }
  return versions.back() + 1;
}

}  // namespace

Status reap(StoreParts& parts, const GcOptions& options, Progress& progress, GcReport& report) {
  WEFT_TRY(OpenVersions::Claims claims, parts.open_versions->begin_claims());
  if (!options.dry_run) WEFT_CHECK(reap_noted(parts, claims, progress, report));
  for (VersionId from = 0;;) {
    WEFT_TRY(const std::vector<VersionId> versions, some_unreaped(parts.index.env(), from));
    if (versions.empty()) return {};
    WEFT_TRY(from,
             options.dry_run ? count_reapable(parts, versions, report) : reap_some(parts, versions, claims, report));
  }
}

}  // namespace weft
