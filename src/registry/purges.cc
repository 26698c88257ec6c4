#include "registry/purges.h"

#include <fmt/core.h>

#include "os/sys.h"
#include "registry/registry_records.h"
#include "weft/names.h"

namespace weft {

using etcd::query_of;
using etcd::Relation;
using etcd::Target;

constexpr std::uint64_t kPurgesPerAnswer = 2'000;  // keys per answer

std::vector<VersionName> Purges::list() const {
  const MutexLock lock(mutex_);
  return {purged_.begin(), purged_.end()};
}

Status Purges::put(const VersionName& version) {
  const RegistryKeys& keys = own_.keys();
  const std::string key = keys.purge(version.model, version.number);
  const std::string live = keys.version(version.model, version.number);
  const std::string gone = keys.tombstone(version.model, version.number);
  etcd::Txn txn;
  txn.compares.push_back({{live, {}}, Target::version, Relation::equal, 0});
  txn.compares.push_back({{gone, {}}, Target::version, Relation::greater, 0});
  txn.then.emplace_back(etcd::Put{key, seal_moment(now_ns(), keys.bound(key)), 0});
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  const std::string spec = spec_of(version.model, version.number);
  if (answer.succeeded) return static_cast<void>(saw({KeyKind::purge, version.model, version.number, {}})), Status{};
  WEFT_TRY(const etcd::RangeAnswer now, own_.client().range(query_of(live, true)));
  if (now.items.empty()) return Error{Errc::not_found, fmt::format("{}: there is no such version", spec)};
  return Error{Errc::exists, fmt::format("{}: it was brought back meanwhile; it is not purged", spec)};
}

Result<bool> Purges::read() {
  etcd::RangeQuery range{own_.keys().all(KeyKind::purge), kPurgesPerAnswer, 0, true, false};
  bool any = false;
  for (;;) {
    WEFT_TRY(const etcd::RangeAnswer page, own_.client().range(range));
    for (const etcd::KeyValue& item : page.items)
      if (const auto key = own_.keys().parse(item.key); key.ok()) any = saw(*key) || any;
    if (!page.more || page.items.empty()) return any;
    range.keys.begin = page.items.back().key + '\0';
  }
}

bool Purges::saw(const RegistryKey& key) {
  const MutexLock lock(mutex_);
  return purged_.insert({key.model, key.number}).second;
}

}  // namespace weft
