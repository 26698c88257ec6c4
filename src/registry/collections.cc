#include "registry/collections.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "registry/registry_compare.h"

namespace weft {

using etcd::query_of;
using etcd::Relation;
using etcd::Target;

OriginCollection Collections::latest() const {
  const MutexLock lock(mutex_);
  return latest_;
}

void Collections::take(OriginCollection collection) {
  const MutexLock lock(mutex_);
  if (collection.sequence > latest_.sequence || collection.origin != latest_.origin) latest_ = std::move(collection);
}

Status Collections::read() {
  const std::string key = own_.keys().collection();
  WEFT_TRY(const etcd::RangeAnswer answer, own_.client().range(query_of(key)));
  if (answer.items.empty()) return {};
  WEFT_TRY(OriginCollection collection, open_collection(answer.items[0].value, own_.keys().bound(key)));
  take(std::move(collection));
  return {};
}

Status Collections::saw(const etcd::Event& event) {
  if (event.deleted) return {};
  WEFT_TRY(OriginCollection collection, open_collection(event.item.value, own_.keys().bound(event.item.key)));
  take(std::move(collection));
  return {};
}

// A lost answer is no success: the caller announces a later sequence, and the files of this one stay named in the next
// list.
Status Collections::announce(const OriginCollection& next) {
  const std::string key = own_.keys().collection();
  WEFT_TRY(const etcd::RangeAnswer now, own_.client().range(query_of(key)));
  const std::uint64_t revision = now.items.empty() ? 0 : now.items[0].mod_revision;
  OriginCollection put = next;
  if (!now.items.empty()) {
    WEFT_TRY(const OriginCollection last, open_collection(now.items[0].value, own_.keys().bound(key)));
    const bool same = last.origin == next.origin;
    if (same && last.sequence >= next.sequence)
      return Error{Errc::changed, fmt::format("another collection of the origin has begun: expected a sequence below "
                                              "{}, got {}",
                                              next.sequence, last.sequence)};
    put.horizon_ns = std::max(put.horizon_ns, last.horizon_ns);
  }
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::mod_revision, Relation::equal, revision});
  txn.then.emplace_back(etcd::Put{key, seal(put, own_.keys().bound(key)), 0});
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  if (!answer.succeeded) return Error{Errc::changed, "another collection of the origin has begun"};
  take(std::move(put));
  return {};
}

Status Collections::bring_back() {
  const OriginCollection known = latest();
  if (known.sequence == 0) return {};
  const Status done = announce(known);
  return done.ok() || done.error().code == Errc::changed || is_permanent(done.error()) ? Status{} : done;
}

}  // namespace weft
