#include "registry/purges.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "registry/etcd_facts.h"
#include "registry/registry_records.h"
#include "weft/names.h"
#include "weft/store/snapshot.h"

namespace weft {

using etcd::query_of;
using etcd::Relation;
using etcd::Target;

constexpr int kPurgeTries = 20;

Result<std::vector<PurgedVersion>> purged_in(Store& store) {
  std::vector<PurgedVersion> all;
  WEFT_TRY(const std::unique_ptr<Snapshot> snapshot, store.snapshot());
  WEFT_TRY(const auto purged, snapshot->purged());
  for (const auto& [id, time_ns] : purged) {
    WEFT_TRY(VersionRow row, snapshot->version(id));
    all.push_back({{std::move(row.model_name), row.number}, row.uid, time_ns});
  }
  return all;
}

// Returns nothing if the version's record has changed since it was read.
Result<std::optional<std::uint64_t>> Purges::try_put(const PurgedVersion& version) {
  const RegistryKeys& keys = own_.keys();
  const std::string& model = version.name.model;
  const std::uint64_t number = version.name.number;
  const std::string live = keys.version(model, number), gone = keys.tombstone(model, number);
  const std::string key = keys.purge(model, number);
  etcd::Txn read;
  read.then.emplace_back(query_of(live, true));
  read.then.emplace_back(query_of(gone));
  read.then.emplace_back(query_of(key));
  WEFT_TRY(const etcd::TxnAnswer now, own_.client().txn(read));
  if (!now.ranges[0].items.empty())
    return Error{Errc::exists,
                 fmt::format("{}: it was brought back meanwhile; it is not purged", spec_of(model, number))};
  if (now.ranges[1].items.empty())
    return Error{Errc::not_found, fmt::format("{}: there is no such version", spec_of(model, number))};
  const etcd::KeyValue& item = now.ranges[1].items[0];
  WEFT_TRY(const RegistryTombstone tombstone, open_tombstone(item.value, keys.bound(gone)));
  WEFT_CHECK(check_uid(tombstone.version.version, model, number, version.uid));
  if (const auto& known = now.ranges[2].items; !known.empty()) {
    const auto purge = open_purge(known[0].value, keys.bound(key));
    if (purge.ok() && purge->uid == version.uid) return std::optional(known[0].mod_revision);
  }
  etcd::Txn txn;
  txn.compares.push_back({{gone, {}}, Target::mod_revision, Relation::equal, item.mod_revision});
  txn.then.emplace_back(purge_of(keys, version));
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  return answer.succeeded ? std::optional(answer.header.revision) : std::nullopt;
}

// A reconciliation may put the tombstone again meanwhile.
Result<std::uint64_t> Purges::put(const PurgedVersion& version) {
  for (int tries = 0; tries < kPurgeTries; ++tries) {
    WEFT_TRY(const auto done, try_put(version));
    if (done) return *done;
  }
  return Error{Errc::busy, fmt::format("{}: others change it all the time; try again",
                                       spec_of(version.name.model, version.name.number))};
}

// A version that the registry has not is not purged there: it is lacking itself, and comes back with its purge.
Status Purges::bring_back(std::span<const PurgedVersion> lost, Impossible& impossible, const RefusalSink& refused) {
  for (const PurgedVersion& version : lost) {
    const auto done = put(version);
    if (done.ok() || done.error().code == Errc::not_found) continue;
    if (!is_permanent(done.error())) return done.error();
    impossible.add(version, done.error().message);
    refused(done.error());
  }
  return {};
}

}  // namespace weft
