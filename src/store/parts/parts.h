// The parts of an open store. Its owners (publishing, collecting, cluster, checking, reading) share them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "catalog/manifests.h"
#include "index/open_versions.h"
#include "os/file_ops.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "packs/packs.h"
#include "store/parts/cluster_facts.h"
#include "store/parts/contents.h"
#include "store/parts/indexed_blobs.h"
#include "store/parts/journaled_index.h"
#include "store/parts/reliances.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Any thread.
struct StoreParts {
  // Errc::corrupt: the index cannot be opened.
  static Result<std::unique_ptr<StoreParts>> open(const SafePath& path, const OpenOptions& options,
                                                  CommitHooks hooks = {}, std::optional<ClusterIdentity> cluster = {});

  // In a cluster: true if an earlier daemon left the file so recently that the registry may still accept a publish that
  // needs it.
  bool is_left_young(const SafePath& file) const { return cluster.joined() && is_young(file, opened_ns); }
  Status check_writable() const;  // Errc::read_only: the store was opened for reading
  Result<VersionRow> version(VersionId id);
  // Returns the blobs of a version, each once and sorted, or only while a reader has it open.
  Result<std::vector<ContentId>> extents_of(VersionId id);
  Result<std::vector<ContentId>> extents_of_open(VersionId id);

  const SafePath path;
  const OpenOptions options;
  const CommitHooks hooks;
  const std::uint64_t opened_ns = now_ns();
  ClusterFacts cluster;
  JournaledIndex index;
  IndexedBlobs blobs;
  Packs packs;
  const Manifests manifests;
  const Contents contents;
  const std::shared_ptr<OpenVersions> open_versions;
  Reliances reliances;
  bool walked = false;  // gc has looked at all packs since the store was opened; guarded by the collector's lock

 private:
  StoreParts(const SafePath& path, const OpenOptions& options, CommitHooks hooks,
             std::optional<ClusterIdentity> cluster, std::unique_ptr<Env> env, std::shared_ptr<OpenVersions> locks);
};

}  // namespace weft
