// A store joins a cluster, and then goes by its registry.
#include <fmt/core.h>

#include "base/text.h"
#include "catalog/cluster_files.h"
#include "diskformat/uuid.h"
#include "store/store_impl.h"

namespace weft {

Status StoreImpl::check_alone() const {
  if (!cluster()) return {};
  return Error{Errc::read_only, fmt::format("{}: names in cluster {} change by its registry alone", path_,
                                            printable(cluster()->cluster))};
}

Status StoreImpl::check_clustered() const {
  if (cluster()) return {};
  return Error{Errc::invalid, fmt::format("{}: it belongs to no cluster", path_)};
}

// What it has may come from a registry, when it lost its STORE/cluster; versions of its own have no place in one.
Status StoreImpl::check_joinable(const WriterLock& /*lock*/) {
  WEFT_TRY(Txn txn, env_->read());
  return each_entry(txn, Table::versions, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(VersionRow version, row_from<VersionRow>(txn, Table::versions, entry.key, entry.value));
    if (!version.publisher.empty()) return {};
    return Error{Errc::unsupported, fmt::format("{}: expected a store without versions of its own to join a cluster, "
                                                "got one with {}@{}",
                                                path_, version.model_name, version.number)};
  });
}

Status StoreImpl::join(const ClusterIdentity& identity) {
  if (cluster() == identity) return {};
  WEFT_TRY(const WriterLock lock, lock_writer());
  if (cluster() == identity) return {};
  if (cluster())
    return Error{Errc::exists, fmt::format("{}: it is node {} of cluster {} already", path_, printable(cluster()->node),
                                           printable(cluster()->cluster))};
  if (identity.cluster.empty() || !parse_uuid(identity.node))
    return Error{Errc::invalid, fmt::format("a node of a cluster: expected an id and a uuid, got \"{}\" and \"{}\"",
                                            printable(identity.cluster), printable(identity.node))};
  WEFT_CHECK(check_joinable(lock));
  WEFT_CHECK(write_cluster(path_, identity));
  cluster_ = identity;
  clustered_ = true;
  return {};
}

}  // namespace weft
