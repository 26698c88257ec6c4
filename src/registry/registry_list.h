// The whole registry at one revision: for a new store, or one that was offline for longer than etcd keeps its history,
// and for a reconciliation. A RegistryCompare marks what a store has already. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "registry/etcd/etcd_client.h"
#include "registry/registry_keys.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

// Receives each refused value, with its key and the reason. Called by the thread that reads.
using RefusalSink = std::function<void(const Error&)>;

// A version in a registry: its model, which never changes, and its identity. Its number may change.
using VersionKey = std::pair<std::string, Uuid>;

class RegistryList {
 public:
  RegistryList(const RegistryKeys& keys, RefusalSink refused) : keys_(keys), refused_(std::move(refused)) {}

  // Reads versions, tombstones, tags, purges and next numbers, in pages. Errc::changed: the revision was compacted
  // meanwhile; read again.
  Status read(etcd::Client& client);
  std::uint64_t revision() const { return revision_; }
  // The key h at that revision; nothing if the registry has no changes.
  const std::optional<etcd::KeyValue>& history() const { return history_; }
  // The model's next number; 0 if there is none. UINT64_MAX if the value does not verify.
  std::uint64_t next_number(const std::string& model) const;
  const RegistryKeys& keys() const { return keys_; }

  struct Item {
    std::uint64_t revision = 0;  // revision of the change; of a version, of its publish
    std::string key;
    std::vector<std::byte> value;
    bool known = false;       // the store has it, or something later
    bool here = false;        // a tombstone of a version that the store has: `revision` is that of the removal
    std::uint64_t moves = 0;  // the version's number in the store, if that differs; else 0
  };
  // The next three are for before order(). find() returns null if there is no such key, or no version of this identity.
  Item* find(std::string_view key);
  Item* find(const std::string& model, const Uuid& uid);
  void forget(MirrorChange change) { gone_.push_back(std::move(change)); }  // the registry lacks what the store has

  // Drops the known items, and sorts the rest in the order of the changes. Versions that get another number are first,
  // so that their former numbers are free. Tags are last: a removal may free a tag that leads to another version now.
  void order();
  // Returns up to `count_max` further differences, decoded; empty at the end.
  std::vector<MirrorChange> take(std::size_t count_max);

 private:
  Status read_kind(etcd::Client& client, KeyKind kind);
  void keep(etcd::KeyValue item);
  void keep_head(const etcd::KeyValue& item);
  std::span<Item> below(const std::string& prefix);
  std::uint64_t published_at(const Item& item) const;
  std::uint64_t number_in(const Item& item) const;

  const RegistryKeys& keys_;
  const RefusalSink refused_;
  std::uint64_t revision_ = 0;
  std::optional<etcd::KeyValue> history_;
  std::vector<Item> items_;                                  // sorted by key until order(), then by revision
  std::map<std::string, std::map<Uuid, Item*>> identities_;  // of the models that find() was called for
  std::map<std::string, std::uint64_t> next_numbers_;        // of the models
  std::vector<MirrorChange> gone_;                           // versions that have left memory
  std::size_t next_ = 0;
};

// Returns the version of an item, live or removed, with its name; nothing for other items and unreadable ones.
std::optional<MirroredVersion> version_in(const RegistryKeys& keys, const RegistryList::Item& item);

// Decodes a value of the registry that was put at `revision`. A tombstone becomes a MirroredVersion that is removed:
// the version may be unknown to the store, or the store may have an earlier message and metrics.
Result<MirrorChange> decode_change(const RegistryKeys& keys, std::string_view key, std::span<const std::byte> value,
                                   std::uint64_t revision);

}  // namespace weft
