// Chooses the base of a version that is being fetched: a local version whose tensors resemble it. Chunks may then come
// as differences from the base (lend()), and equal chunks are not requested (same_copies.h). Counts what that saved.
//
// Any thread. Nothing is called under the mutex.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "blobs/local_bytes.h"
#include "fetch/fetch_sources.h"
#include "fetch/manifest_fetch.h"
#include "fetch/version_bases.h"
#include "weft/bytes/source.h"
#include "weft/content.h"
#include "weft/model/base_pairs.h"
#include "weft/result.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

// Counts of one version that has a base.
struct CodedVersion {
  std::string version, base;  // "bert@2" and "bert@1"
  CodedCounts counts;
};

class FetchBases {
 public:
  // What a FetchBases needs. All outlive it.
  struct Parts {
    Store& store;
    ManifestFetch& manifests;
    const FetchSources& sources;
    LocalBytes& local;
    std::function<bool(const ContentId& blob)> is_coming;  // true if a transfer has the blob; any thread
    std::function<void(const ContentId& id)> damaged;      // as FetchOptions::damaged
  };
  struct Counts {
    CodedCounts all;                   // of all versions
    std::optional<CodedVersion> last;  // the last version that had a base
  };

  explicit FetchBases(Parts parts) : parts_(std::move(parts)) {}

  void allow(bool allowed) WEFT_EXCLUDES(mutex_);  // FetchPolicy::sparse
  bool are_allowed() const WEFT_EXCLUDES(mutex_);

  // Returns the bases of a version; null if no candidate is good enough. Transfers of one version share them if they
  // begin within two seconds. One call at a time: the caller has a mutex for it. Reads the store.
  std::shared_ptr<VersionBases> choose(const DecodedVersion& version) WEFT_EXCLUDES(mutex_);
  // Adds the local bases of the runs to `aid`, locked until the read is over. `bases` may be null.
  void lend(const std::shared_ptr<VersionBases>& bases, std::span<const ChunkRun> runs, ReadAid& aid)
      WEFT_EXCLUDES(mutex_);
  // Returns the places of the runs' bases. If a run has no base, or its base is not local, the place has no pack.
  std::vector<RunBase> places_of(std::span<const std::optional<BasePair>> pairs, std::span<const ChunkRun> runs) const;
  // Leaves out a damaged base, and reports it the first time.
  void note_damage(VersionBases& bases, const ContentId& base) const;
  // Counts chunks of a version. `bases` may be null.
  void note_coded(const std::shared_ptr<VersionBases>& bases, const CodedCounts& counts) WEFT_EXCLUDES(mutex_);
  Counts counts() const WEFT_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    VersionId version = 0;
    Clock::time_point until{};
    std::shared_ptr<VersionBases> bases;
  };
  Result<std::vector<VersionId>> candidates_for(const VersionRow& row) const;
  bool has_most_of(const BasePairs& pairs) const;
  std::shared_ptr<VersionBases> best_of(std::span<const VersionId> candidates, const DecodedVersion& version,
                                        const std::shared_ptr<VersionBases>& before) const;
  bool is_sound(const RunBase& base, std::uint64_t chunk) const;

  const Parts parts_;
  mutable Mutex mutex_;
  bool allowed_ WEFT_GUARDED_BY(mutex_) = true;
  Choice chosen_ WEFT_GUARDED_BY(mutex_);
  CodedCounts coded_ WEFT_GUARDED_BY(mutex_);
  std::shared_ptr<VersionBases> last_coded_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
