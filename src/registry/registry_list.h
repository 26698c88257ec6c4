// The whole registry at one revision, and its differences from a store: for a new store, or one that was offline for
// longer than etcd keeps its history. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "registry/etcd_client.h"
#include "registry/registry_keys.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

// Receives each refused value, with its key and the reason. Called by the thread that reads.
using RefusalSink = std::function<void(const Error&)>;

class RegistryList {
 public:
  RegistryList(const RegistryKeys& keys, RefusalSink refused) : keys_(keys), refused_(std::move(refused)) {}

  // Reads versions, tombstones and tags, in pages. Errc::changed: the revision was compacted meanwhile; read again.
  Status read(etcd::Client& client);
  std::uint64_t revision() const { return revision_; }

  // Drops the items that the store has, adds deletions for tags and memory notes that only the store has, and sorts the
  // rest in the order of the changes. Live versions that only the store has are reported as refused: no node removed
  // them. Only the caller may change the store meanwhile.
  Status compare(Store& store);
  // After compare(): models with versions, live or removed, that the registry lacks, and their next numbers in the
  // store.
  std::span<const std::pair<std::string, std::uint64_t>> ahead() const { return ahead_; }
  // After compare(): live versions of which the registry has an earlier message and metrics, with those of the store.
  std::span<const MirroredVersion> described() const { return described_; }
  // Returns up to `count_max` further differences, decoded; empty at the end.
  std::vector<MirrorChange> take(std::size_t count_max);

 private:
  struct Item {
    std::uint64_t revision = 0;  // revision of the change; of a version, of its publish
    std::string key;
    std::vector<std::byte> value;
    bool known = false;  // the store has it
    bool here = false;   // a tombstone of a version that the store has: `revision` is that of the removal
  };
  Status read_kind(etcd::Client& client, KeyKind kind);
  void keep(etcd::KeyValue item);
  Item* find(std::string_view key);
  std::uint64_t published_at(const Item& item) const;
  bool compare_version(const VersionRow& row);  // false if the registry lacks it
  Status compare_memory(Store& store);
  void compare_tag(const std::string& model, const TagRow& tag);

  const RegistryKeys& keys_;
  const RefusalSink refused_;
  std::uint64_t revision_ = 0;
  std::vector<Item> items_;         // sorted by key until compare(), then by revision
  std::vector<MirrorChange> gone_;  // deletions of tags, and versions that have left memory
  std::vector<std::pair<std::string, std::uint64_t>> ahead_;
  std::vector<MirroredVersion> described_;
  std::size_t next_ = 0;
};

// Decodes a value of the registry that was put at `revision`. A tombstone becomes a MirroredVersion that is removed:
// the version may be unknown to the store, or the store may have an earlier message and metrics.
Result<MirrorChange> decode_change(const RegistryKeys& keys, std::string_view key, std::span<const std::byte> value,
                                   std::uint64_t revision);

}  // namespace weft
