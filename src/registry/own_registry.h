// The registry in etcd that this node belongs to. Changes and checked reads fail with Errc::not_found if etcd has
// another registry now, or none. It also caches the heads of the models that this node publishes. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "registry/etcd_client.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

class OwnRegistry {
 public:
  // Both outlive this.
  OwnRegistry(etcd::Client& client, const RegistryKeys& keys) : client_(client), keys_(keys) {}

  etcd::Client& client() const { return client_; }
  const RegistryKeys& keys() const { return keys_; }

  // Reads the identity of the cluster. If there is none, a node without a cluster (`own` is "") creates it; a node of
  // cluster `own` fails with Errc::not_found: its registry was lost, or this is the wrong etcd. Later changes fail in
  // the same way unless they reach the registry found here.
  Result<RegistryMeta> agree(std::string_view own, etcd::Header& header);
  // Runs a transaction that changes the registry.
  Result<etcd::TxnAnswer> change(etcd::Txn txn);
  // Runs a transaction that only reads, and that has one operation less than etcd allows.
  Result<etcd::TxnAnswer> read(etcd::Txn txn);
  // Puts `value`, which must be unique, as the barrier of `node`, this node. Returns the revision, which is newer than
  // all earlier commits; the watch receives it.
  Result<std::uint64_t> barrier(std::string_view node, std::string_view value);
  // Puts the key of a live version again, unless it has changed since `revision`: then returns nothing.
  Result<std::optional<std::uint64_t>> put_again(std::string_view model, std::uint64_t number,
                                                 const MirroredVersion& version, std::uint64_t revision);

  // The newest head that this node has seen of a model that it publishes.
  struct KnownHead {
    RegistryHead head;
    std::uint64_t revision = 0;
  };
  std::optional<KnownHead> known_head(const std::string& model);
  void remember(const std::string& model, const RegistryHead& head, std::uint64_t revision);
  void forget(const std::string& model);
  // Records a head that the watch has received.
  void saw_head(const std::string& model, const etcd::Event& event);

 private:
  std::vector<std::byte> ours();
  void found_ours(std::vector<std::byte> value);
  Status check_ours(std::span<const etcd::KeyValue> found, std::span<const std::byte> ours) const;

  etcd::Client& client_;
  const RegistryKeys& keys_;
  Mutex mutex_;
  std::map<std::string, KnownHead> heads_ WEFT_GUARDED_BY(mutex_);
  std::vector<std::byte> ours_ WEFT_GUARDED_BY(mutex_);  // value of the key meta; empty before agree()
};

}  // namespace weft
