#include "store/parts/parts.h"

#include <utility>

#include <fmt/core.h>

#include "index/tables.h"

namespace weft {

StoreParts::StoreParts(const SafePath& path_, const OpenOptions& options_, CommitHooks hooks_,
                       std::optional<ClusterIdentity> cluster_, std::unique_ptr<Env> env,
                       std::shared_ptr<OpenVersions> locks)
    : path(path_),
      options(options_),
      hooks(std::move(hooks_)),
      cluster(path, std::move(cluster_)),
      index(path, std::move(env), {cluster, packs, contents}, hooks),
      blobs(index, cluster),
      packs(path, blobs),
      manifests(path, PackedManifests{packs, index.env()}),
      contents(path, manifests, options.decode),
      open_versions(std::move(locks)) {}

Result<std::unique_ptr<StoreParts>> StoreParts::open(const SafePath& path, const OpenOptions& options,
                                                     CommitHooks hooks, std::optional<ClusterIdentity> cluster) {
  EnvOptions env_options;
  env_options.write = options.write;
  env_options.map_bytes = options.map_bytes;
  env_options.reader_wait_ms = options.reader_wait_ms;
  env_options.patience = options.patience;
  WEFT_TRY(std::unique_ptr<Env> env, Env::open(path / "index", env_options));
  WEFT_TRY(std::shared_ptr<OpenVersions> locks, OpenVersions::open(path / "index", options.open_versions));
  return std::unique_ptr<StoreParts>(
      new StoreParts(path, options, std::move(hooks), std::move(cluster), std::move(env), std::move(locks)));
}

Status StoreParts::check_writable() const {
  return options.write ? Status{} : Status{Error{Errc::read_only, fmt::format("{}: opened for reading", path)}};
}

Result<VersionRow> StoreParts::version(VersionId id) {
  WEFT_TRY(Txn txn, index.read());
  return need_row<VersionRow>(txn, Table::versions, key_of(id));
}

Result<std::vector<ContentId>> StoreParts::extents_of(VersionId id) {
  WEFT_TRY(const VersionRow row, version(id));
  WEFT_TRY(const VersionContent content, contents.of(row.manifest));
  return blobs_of(content);
}

Result<std::vector<ContentId>> StoreParts::extents_of_open(VersionId id) {
  WEFT_TRY(const bool is_open, open_versions->is_open(id));
  return is_open ? extents_of(id) : Result<std::vector<ContentId>>(std::vector<ContentId>());
}

}  // namespace weft
