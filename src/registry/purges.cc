#include "registry/purges.h"

#include <fmt/core.h>

#include <utility>

#include "registry/etcd_facts.h"
#include "registry/registry_records.h"
#include "weft/names.h"

namespace weft {

using etcd::query_of;
using etcd::Relation;
using etcd::Target;

constexpr std::uint64_t kPurgesPerAnswer = 2'000;  // keys per answer
constexpr int kPurgeTries = 20;

std::vector<PurgedVersion> Purges::list() const {
  const MutexLock lock(mutex_);
  std::vector<PurgedVersion> all;
  for (const auto& [version, number] : purged_) all.push_back({{version.first, number}, version.second});
  return all;
}

void Purges::mark(Lacking& lacking) const {
  const MutexLock lock(mutex_);
  for (const MirroredVersion& one : lacking.versions)
    if (const VersionKey key(one.version.model_name, one.version.uid); purged_.contains(key))
      lacking.purged.insert(key);
}

// Returns false if the version's record has changed since it was read.
Result<bool> Purges::try_put(const PurgedVersion& version) {
  const RegistryKeys& keys = own_.keys();
  const std::string& model = version.name.model;
  const std::uint64_t number = version.name.number;
  const std::string live = keys.version(model, number), gone = keys.tombstone(model, number);
  etcd::Txn read;
  read.then.emplace_back(query_of(live, true));
  read.then.emplace_back(query_of(gone));
  WEFT_TRY(const etcd::TxnAnswer now, own_.client().txn(read));
  if (!now.ranges[0].items.empty())
    return Error{Errc::exists,
                 fmt::format("{}: it was brought back meanwhile; it is not purged", spec_of(model, number))};
  if (now.ranges[1].items.empty())
    return Error{Errc::not_found, fmt::format("{}: there is no such version", spec_of(model, number))};
  const etcd::KeyValue& item = now.ranges[1].items[0];
  WEFT_TRY(const RegistryTombstone tombstone, open_tombstone(item.value, keys.bound(gone)));
  WEFT_CHECK(check_uid(tombstone.version.version, model, number, version.uid));
  etcd::Txn txn;
  txn.compares.push_back({{gone, {}}, Target::mod_revision, Relation::equal, item.mod_revision});
  txn.then.emplace_back(purge_of(keys, model, number, version.uid));
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  return answer.succeeded;
}

// A repeated purge succeeds. A reconciliation may put the tombstone again meanwhile.
Status Purges::put(const PurgedVersion& version) {
  for (int tries = 0; tries < kPurgeTries; ++tries) {
    WEFT_TRY(const bool done, try_put(version));
    if (!done) continue;
    add(version);
    return {};
  }
  return Error{Errc::busy, fmt::format("{}: others change it all the time; try again",
                                       spec_of(version.name.model, version.name.number))};
}

void Purges::forget(const PurgedVersion& version) {
  const MutexLock lock(mutex_);
  purged_.erase({version.name.model, version.uid});
}

void Purges::renumber(RegistryList& list) {
  const MutexLock lock(mutex_);
  for (auto& [version, number] : purged_)
    if (const RegistryList::Item* const item = list.find(version.first, version.second))
      if (const auto key = own_.keys().parse(item->key); key.ok()) number = key->number;
}

// Skips purged versions that the registry lacks.
Status Purges::bring_back(std::vector<RefusedChange>& refused) {
  for (const PurgedVersion& version : list()) {
    WEFT_TRY(const etcd::RangeAnswer now,
             own_.client().range(query_of(own_.keys().purge(version.name.model, version.name.number), true)));
    if (!now.items.empty()) continue;
    const Status done = put(version);
    if (done.ok() || done.error().code == Errc::not_found) continue;
    if (!is_permanent(done.error())) return done;
    if (done.error().code == Errc::exists) forget(version);
    if (refused.size() < kRefusedMax)
      refused.push_back({version.name.model, {}, {}, Impossible::one_line(done.error().message)});
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
