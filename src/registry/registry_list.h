// The whole of a registry at one revision, and what of it a store does not know yet: for a store that is new, or was
// away for longer than etcd keeps what happened. For one thread.
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
#include "weft/cluster_store.h"
#include "weft/result.h"
#include "weft/store.h"
#include "weft/store_rows.h"

namespace weft {

// Named by its key, and why. Called by the thread that reads.
using RefusalSink = std::function<void(const Error&)>;

class RegistryList {
 public:
  RegistryList(const RegistryKeys& keys, RefusalSink refused) : keys_(keys), refused_(std::move(refused)) {}

  // Versions, removed ones and tags, in pages. Errc::changed: compacted meanwhile; read again.
  Status read(etcd::Client& client);
  std::uint64_t revision() const { return revision_; }
  std::size_t size() const { return items_.size(); }

  // Leaves out what the store has, adds the tags that it has and the registry has not, and puts the rest in the order
  // in which it happened. Live versions that the registry does not know are told of as refused: nobody removed them.
  // Only the caller changes the store meanwhile.
  Status compare(Store& store);
  // After compare(): models of which the store knows versions, live or removed, that the registry does not, each with
  // its next number as the store has it.
  std::span<const std::pair<std::string, std::uint64_t>> ahead() const { return ahead_; }
  // The next `count_max` of what compare() left, decoded; empty when there are no more.
  std::vector<MirrorChange> take(std::size_t count_max);

 private:
  struct Item {
    std::uint64_t revision = 0;  // when it happened
    std::string key;
    std::vector<std::byte> value;
    bool known = false;  // to the store
    bool here = false;   // a removed version that the store has live: its removal alone is news
  };
  Status read_kind(etcd::Client& client, KeyKind kind);
  void keep(etcd::KeyValue item);
  Item* find(std::string_view key);
  bool compare_version(const VersionRow& row);  // false: the registry does not know it
  Status compare_memory(Store& store);
  void compare_tag(const std::string& model, const TagRow& tag);

  const RegistryKeys& keys_;
  const RefusalSink refused_;
  std::uint64_t revision_ = 0;
  std::vector<Item> items_;         // by key until compare(), then by revision
  std::vector<MirrorChange> gone_;  // tags, and what is in memory no more
  std::vector<std::pair<std::string, std::uint64_t>> ahead_;
  std::size_t next_ = 0;
};

// What a value of the registry says; of a tombstone the removal, unless `whole`: the version, removed.
Result<MirrorChange> decode_change(const RegistryKeys& keys, std::string_view key, std::span<const std::byte> value,
                                   bool whole);

}  // namespace weft
