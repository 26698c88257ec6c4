#include "registry/purges.h"

#include <fmt/core.h>

#include <utility>

#include "os/sys.h"
#include "registry/etcd_facts.h"
#include "registry/registry_records.h"
#include "weft/names.h"

namespace weft {

using etcd::query_of;
using etcd::Relation;
using etcd::Target;

constexpr std::uint64_t kPurgesPerAnswer = 2'000;  // keys per answer

std::vector<PurgedVersion> Purges::list() const {
  const MutexLock lock(mutex_);
  std::vector<PurgedVersion> all;
  for (const auto& [version, number] : purged_) all.push_back({{version.first, number}, version.second});
  return all;
}

// A repeated purge succeeds.
Status Purges::put(const PurgedVersion& version) {
  const RegistryKeys& keys = own_.keys();
  const std::string& model = version.name.model;
  const std::uint64_t number = version.name.number;
  const std::string key = keys.purge(model, number), live = keys.version(model, number);
  const std::string gone = keys.tombstone(model, number);
  const auto brought_back = [&] {
    return Error{Errc::exists,
                 fmt::format("{}: it was brought back meanwhile; it is not purged", spec_of(model, number))};
  };
  etcd::Txn read;
  read.then.emplace_back(query_of(live, true));
  read.then.emplace_back(query_of(gone));
  WEFT_TRY(const etcd::TxnAnswer now, own_.client().txn(read));
  if (!now.ranges[0].items.empty()) return brought_back();
  if (now.ranges[1].items.empty())
    return Error{Errc::not_found, fmt::format("{}: there is no such version", spec_of(model, number))};
  const etcd::KeyValue& item = now.ranges[1].items[0];
  WEFT_TRY(const RegistryTombstone tombstone, open_tombstone(item.value, keys.bound(gone)));
  WEFT_CHECK(check_uid(tombstone.version.version, model, number, version.uid));
  etcd::Txn txn;
  txn.compares.push_back({{gone, {}}, Target::mod_revision, Relation::equal, item.mod_revision});
  txn.then.emplace_back(etcd::Put{key, seal(RegistryMoment{now_ns(), version.uid}, keys.bound(key)), 0});
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  if (!answer.succeeded) return brought_back();
  add(version);
  return {};
}

void Purges::renumber(RegistryList& list) {
  const MutexLock lock(mutex_);
  for (auto& [version, number] : purged_)
    if (const RegistryList::Item* const item = list.find(version.first, version.second))
      if (const auto key = own_.keys().parse(item->key); key.ok()) number = key->number;
}

// Skips purged versions whose tombstones the registry lacks.
Status Purges::bring_back() {
  for (const PurgedVersion& version : list()) {
    WEFT_TRY(const etcd::RangeAnswer now,
             own_.client().range(query_of(own_.keys().purge(version.name.model, version.name.number), true)));
    if (!now.items.empty()) continue;
    const Status done = put(version);
    if (!done.ok() && done.error().code != Errc::exists && done.error().code != Errc::not_found) return done;
  }
  return {};
}

// Values that do not verify count as none.
Result<bool> Purges::read() {
  bool any = false;
  WEFT_CHECK(etcd::each_page(own_.client(), {own_.keys().all(KeyKind::purge), kPurgesPerAnswer, 0, false, false},
                             [&](const etcd::RangeAnswer& page) {
                               for (const etcd::KeyValue& item : page.items) {
                                 const auto key = own_.keys().parse(item.key);
                                 const auto fresh = key.ok() ? saw(*key, item) : false;
                                 any = (fresh.ok() && *fresh) || any;
                               }
                             }));
  return any;
}

Result<bool> Purges::saw(const RegistryKey& key, const etcd::KeyValue& item) {
  WEFT_TRY(const RegistryMoment moment, open_moment(item.value, own_.keys().bound(item.key)));
  return add({{key.model, key.number}, moment.uid});
}

bool Purges::add(PurgedVersion version) {
  const MutexLock lock(mutex_);
  auto& [model, number] = version.name;
  return purged_.insert_or_assign(VersionKey(std::move(model), version.uid), number).second;
}

}  // namespace weft
