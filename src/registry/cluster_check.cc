#include "registry/cluster_check.h"

#include <fmt/core.h>

#include "base/text.h"
#include "registry/etcd/etcd_client.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

using etcd::Relation;
using etcd::Target;

// etcd checks the rights of all operations of a transaction before it compares. No key has a version below 0, so this
// transaction changes nothing.
Status check_rights(etcd::Client& client, const RegistryKeys& keys, const EtcdOptions& options) {
  etcd::Txn txn;
  txn.compares.push_back({{keys.meta(), {}}, Target::version, Relation::less, 0});
  txn.then.emplace_back(etcd::RangeQuery{keys.all(), 1, 0, true, false});
  txn.then.emplace_back(etcd::Delete{keys.all()});
  const auto answer = client.txn(txn);
  if (answer.ok()) return {};
  const Error& error = answer.error();
  if (error.code != Errc::permission || options.user.empty()) return error;
  return Error{error.code,
               fmt::format("{}; expected that the etcd user {} can log in, and has a role to read and write "
                           "the keys below {}",
                           error.message, printable(options.user), printable(keys.all().begin))};
}

Status check_identity(etcd::Client& client, const RegistryKeys& keys, const ClusterIdentity& own) {
  WEFT_TRY(const auto answer, client.range({{keys.meta(), {}}, 0, 0, false, false}));
  if (answer.items.empty())
    return Error{Errc::not_found, fmt::format("{}: etcd has nothing at {}, and this store is of the cluster {}",
                                              client.endpoint(), printable(keys.meta()), printable(own.cluster))};
  WEFT_TRY(const RegistryMeta meta, open_meta(answer.items[0].value, keys.bound(keys.meta())));
  if (meta.cluster == own.cluster) return {};
  return Error{Errc::invalid, fmt::format("{}: this store belongs to the cluster {}, and etcd has {}",
                                          client.endpoint(), printable(own.cluster), printable(meta.cluster))};
}

Status check_endpoint(const std::string& endpoint, const EtcdOptions& options, Store* store) {
  EtcdOptions alone = options;
  alone.endpoints = {endpoint};
  etcd::Client client(alone);
  const RegistryKeys keys(options.prefix, options.cluster);
  WEFT_CHECK(check_rights(client, keys, options));
  if (store == nullptr || !store->cluster()) return {};
  return check_identity(client, keys, *store->cluster());
}

}  // namespace

Status check_options(const EtcdOptions& options) {
  WEFT_CHECK(etcd::Client::check(options));
  return RegistryKeys::check(options.prefix, options.cluster);
}

Status check_may_join(Store& store) {
  if (store.cluster()) return {};
  WEFT_TRY(std::unique_ptr<Snapshot> snapshot, store.snapshot());
  WEFT_TRY(const auto models, snapshot->models());
  if (models.rows.empty()) return {};
  return Error{Errc::invalid, fmt::format("{}: has versions of its own; a node of a cluster begins with an empty store",
                                          store.path())};
}

std::vector<Error> check_cluster(Store* store, const EtcdOptions& options) {
  std::vector<Error> wrong;
  const auto add = [&wrong](const Status& status) {
    if (!status.ok()) wrong.push_back(status.error());
  };
  if (store != nullptr) add(check_may_join(*store));
  if (const Status usable = check_options(options); !usable.ok()) return add(usable), wrong;
  for (const std::string& endpoint : options.endpoints) add(check_endpoint(endpoint, options, store));
  return wrong;
}

}  // namespace weft
