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
#include "registry/etcd/etcd_client.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// Errc::unreachable: no node changes names now. `what`: RegistryMeta::lost.
Error lost_history(std::string_view what);

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
  // The generation of the registry that agree() found.
  std::uint64_t generation() const;
  std::string lost() const;                                   // RegistryMeta::lost of it
  bool has_identity(std::span<const std::byte> value) const;  // true if `value` is that of its key meta
  // Runs a transaction that changes names, and has four operations less than etcd allows. It also puts the key h, and
  // succeeds only if etcd has all the history that this node has received. Errc::unreachable: the registry has lost
  // history, and nothing was changed.
  Result<etcd::TxnAnswer> change(etcd::Txn txn);
  // Records the revision of a put of the key h that this node has received.
  void saw_history(std::uint64_t revision);
  // Records in etcd that the registry has lost history, so that no node changes names until a reconciliation. `what`
  // says which node found it. No effect if that is recorded already.
  Status report_loss(std::string_view what);
  // Begins a generation that is larger than `known`, in which every node brings back what the registry lacks. If etcd
  // is empty, makes the registry of the cluster `own` again. No effect if a larger generation has begun already.
  // Returns the generation. Errc::not_found: etcd has another cluster.
  Result<std::uint64_t> begin_generation(std::string_view own, std::uint64_t known);
  // Records that this node has completed its share of a generation. Errc::changed: another generation has begun.
  Status complete_generation(std::string_view node, const RegistryShare& share);
  Result<std::map<std::string, RegistryShare>> shares();  // by node; values that do not verify are left out
  // Returns the share of one node; nothing if there is none that verifies.
  Result<std::optional<RegistryShare>> share(std::string_view node);
  // Runs a transaction that only reads, and that has one operation less than etcd allows.
  Result<etcd::TxnAnswer> read(etcd::Txn txn);
  // Puts `value`, which must be unique, as the barrier of `node`, this node. Returns the revision, which is newer than
  // all earlier commits; the watch receives it.
  Result<std::uint64_t> barrier(std::string_view node, std::string_view value);
  // Puts the key of a version again, live or removed, unless it has changed since `revision`: then returns nothing.
  // Errc::invalid: the value is too large.
  Result<std::optional<std::uint64_t>> put_again(const std::string& key, std::vector<std::byte> value,
                                                 std::uint64_t revision);

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
  // The registry's identity, as agree() has read it.
  struct Ours {
    std::vector<std::byte> value;  // of the key meta; empty before agree()
    RegistryMeta meta;
    std::uint64_t history = 0;  // newest revision of h that this node has received; 0: none
  };
  Ours ours() const;
  void found_ours(std::vector<std::byte> value, const RegistryMeta& meta, std::uint64_t history);
  Status check_ours(std::span<const etcd::KeyValue> found, const Ours& ours) const;
  Status create(const RegistryMeta& meta);
  void compare_ours(etcd::Txn& txn, const Ours& ours) const;
  void put_history(etcd::Txn& txn) const;

  etcd::Client& client_;
  const RegistryKeys& keys_;
  mutable Mutex mutex_;
  std::map<std::string, KnownHead> heads_ WEFT_GUARDED_BY(mutex_);
  Ours ours_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
