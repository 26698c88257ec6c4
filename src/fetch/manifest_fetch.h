// Fetches the manifests of bare versions, which are known by name alone, and keeps decoded manifests.
//
// Each manifest is fetched once for all callers. A failed resolution is not repeated at once, because a walk over many
// bare versions would wait for each of them, each time.
//
// Any thread. No source and no store is called under the mutex.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lru_cache.h"
#include "base/mutex.h"
#include "fetch/fetch_options.h"
#include "fetch/fetch_sources.h"
#include "fetch/plan.h"
#include "weft/model/manifest.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

struct DecodedVersion {
  VersionRow row;
  Manifest manifest;
  std::uint64_t bytes = 0;        // of all files
  std::vector<FileGroup> groups;  // of the manifest's small files
};

class ManifestFetch {
 public:
  // All arguments outlive this.
  ManifestFetch(Store& store, FetchedCache& cache, FetchSources& sources, const FetchOptions& options)
      : store_(store), cache_(cache), sources_(sources), options_(options) {}

  // As ManifestResolver::resolve(). Waits for sources, and up to FetchOptions::patience for a publisher that is in the
  // cluster to hand out the manifest.
  Status resolve(VersionId version) WEFT_EXCLUDES(mutex_);
  // Resolves a version and returns its content. Waits as resolve().
  Result<std::shared_ptr<const DecodedVersion>> content(VersionId version) WEFT_EXCLUDES(mutex_);
  // Ends the waits for publishers.
  void end() WEFT_EXCLUDES(mutex_);
  std::uint64_t fetched() const WEFT_EXCLUDES(mutex_);  // manifests

 private:
  using Clock = std::chrono::steady_clock;
  struct Failure {
    Error error;
    std::string publisher;
    bool was_there = false;  // the publisher was in the cluster
    Clock::time_point until;
  };
  std::optional<Error> failed_before(VersionId version) WEFT_EXCLUDES(mutex_);
  void remember(VersionId version, const std::string& publisher, const Error& error, Clock::duration took)
      WEFT_EXCLUDES(mutex_);
  Status fetch(const VersionRow& row) WEFT_EXCLUDES(mutex_);
  Result<std::vector<std::byte>> await(const VersionRow& row) WEFT_EXCLUDES(mutex_);

  Store& store_;
  FetchedCache& cache_;
  FetchSources& sources_;
  const FetchOptions& options_;
  LruCache<DecodedVersion> contents_{64U << 20U};
  mutable Mutex mutex_;
  Condition ends_;
  std::map<VersionId, std::shared_future<Status>> resolving_ WEFT_GUARDED_BY(mutex_);
  std::map<VersionId, Failure> failures_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t fetched_ WEFT_GUARDED_BY(mutex_) = 0;
  bool ending_ WEFT_GUARDED_BY(mutex_) = false;
};

}  // namespace weft
