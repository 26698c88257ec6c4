#include "registry/etcd_restore.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>

#include "base/limits.h"
#include "base/plain_text.h"
#include "os/sys.h"
#include "registry/etcd_facts.h"
#include "weft/names.h"

namespace weft {

// The registry's state of a version to restore, at one revision.
struct EtcdRestore::Returning {
  std::uint64_t revision = 0;
  RegistryHead head;
  std::uint64_t head_revision = 0;  // 0: the model does not exist yet
  bool there = false;               // the registry has the version, live or removed
  // The live version with the message and metrics to restore, if those are later than its own; and its revision.
  std::optional<MirroredVersion> described = {};
  std::uint64_t live_revision = 0;
};

namespace {

using etcd::query_of;
using etcd::Relation;
using etcd::Target;

constexpr auto kRestorePause = std::chrono::milliseconds(50);

}  // namespace

Result<EtcdRestore::Returning> EtcdRestore::read_returning(const MirroredVersion& version) {
  const VersionRow& row = version.version;
  etcd::Txn txn;
  txn.then.emplace_back(query_of(keys_.head(row.model_name)));
  txn.then.emplace_back(query_of(keys_.version(row.model_name, row.number)));
  txn.then.emplace_back(query_of(keys_.tombstone(row.model_name, row.number)));
  WEFT_TRY(etcd::TxnAnswer answer, client_.txn(txn));
  Returning now;
  now.revision = answer.header.revision;
  if (const auto& heads = answer.ranges[0].items; !heads.empty()) {
    WEFT_TRY(now.head, open_head(heads[0].value, keys_.bound(heads[0].key)));
    now.head_revision = heads[0].mod_revision;
  }
  Uuid uid = row.uid;
  if (const auto& live = answer.ranges[1].items; !live.empty()) {
    WEFT_TRY(MirroredVersion known, open_version(live[0].value, keys_.bound(live[0].key)));
    uid = known.version.uid;
    now.there = true;
    if (row.removed && uid == row.uid)
      return Error{Errc::exists,
                   fmt::format("{}: it was removed, and the registry has it", spec_of(row.model_name, row.number))};
    if (uid == row.uid && known.version.described_ns < row.described_ns) {
      copy_description(row, known.version);
      now.described = std::move(known);
      now.live_revision = live[0].mod_revision;
    }
  } else if (const auto& gone = answer.ranges[2].items; !gone.empty()) {
    WEFT_TRY(const RegistryTombstone known, open_tombstone(gone[0].value, keys_.bound(gone[0].key)));
    uid = known.version.version.uid;
    now.there = true;
  }
  if (uid != row.uid) return has_another(row.model_name, row.number);
  return now;
}

// Returns nothing after a lost race. A live version that the registry has may only get a later message and metrics.
Result<std::optional<bool>> EtcdRestore::try_bring_back(const MirroredVersion& version, bool check_only) {
  const VersionRow& row = version.version;
  const std::string& model = row.model_name;
  WEFT_TRY(const Returning now, read_returning(version));
  if (check_only && !now.there && !row.removed) WEFT_CHECK(names_.check_shows(model));
  const bool needed = !now.there || now.described;
  if (check_only || !needed) return std::optional(needed);
  if (now.described) {
    WEFT_TRY(const auto put, own_.put_again(model, row.number, *now.described, now.live_revision));
    return put ? std::optional(true) : std::nullopt;
  }
  const std::string head_key = keys_.head(model);
  const std::string key = row.removed ? keys_.tombstone(model, row.number) : keys_.version(model, row.number);
  const RegistryHead head{std::max(now.head.next_number, row.number + 1),
                          now.head_revision == 0 ? row.time_ns : now.head.created_ns, row.kind};
  // With the current revision a tombstone sorts after the versions restored before it (RegistryList).
  std::vector<std::byte> value =
      row.removed ? seal(RegistryTombstone{version, now.revision}, keys_.bound(key)) : seal(version, keys_.bound(key));
  if (value.size() > limits::kRegistryRecordMax)
    return Error{Errc::invalid, fmt::format("{}: its metadata takes {} bytes; expected at most {}",
                                            spec_of(model, row.number), value.size(), limits::kRegistryRecordMax)};
  etcd::Txn txn;
  txn.compares.push_back({{head_key, {}}, Target::mod_revision, Relation::equal, now.head_revision});
  for (const std::string& absent : {keys_.version(model, row.number), keys_.tombstone(model, row.number)})
    txn.compares.push_back({{absent, {}}, Target::version, Relation::equal, 0});
  txn.then.emplace_back(etcd::Put{head_key, seal(head, keys_.bound(head_key)), 0});
  txn.then.emplace_back(etcd::Put{key, std::move(value), 0});
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  own_.forget(model);
  return answer.succeeded ? std::optional(true) : std::nullopt;
}

// A tag that the registry has already stays unchanged.
Result<std::optional<bool>> EtcdRestore::try_bring_back(const MirroredTag& tag, bool check_only) {
  const std::string key = keys_.tag(tag.model, tag.name);
  const std::string to = keys_.version(tag.model, tag.number);
  if (check_only) return std::optional(true);
  WEFT_TRY(const etcd::RangeAnswer target, client_.range(query_of(to)));
  if (target.items.empty()) return std::optional(false);
  WEFT_TRY(const MirroredVersion version, open_version(target.items[0].value, keys_.bound(to)));
  if (version.version.uid != tag.uid) return has_another(tag.model, tag.number);
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::version, Relation::equal, 0});
  txn.compares.push_back({{to, {}}, Target::mod_revision, Relation::equal, target.items[0].mod_revision});
  txn.then.emplace_back(
      etcd::Put{key, seal(RegistryTag{tag.number, tag.time_ns, tag.by, tag.uid}, keys_.bound(key)), 0});
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  return std::optional(answer.succeeded);
}

Status EtcdRestore::raise(const std::string& model, std::uint64_t next_number) {
  const std::string key = keys_.head(model);
  const auto end = Clock::now() + retry_max_;
  do {
    WEFT_TRY(const etcd::RangeAnswer known, client_.range(query_of(key)));
    const std::uint64_t revision = known.items.empty() ? 0 : known.items[0].mod_revision;
    RegistryHead head{0, now_ns()};
    if (revision != 0) {
      WEFT_TRY(head, open_head(known.items[0].value, keys_.bound(key)));
    }
    if (head.next_number >= next_number) return {};
    head.next_number = next_number;
    etcd::Txn txn;
    txn.compares.push_back({{key, {}}, Target::mod_revision, Relation::equal, revision});
    txn.then.emplace_back(etcd::Put{key, seal(head, keys_.bound(key)), 0});
    WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
    own_.forget(model);
    if (answer.succeeded) return {};
  } while (Clock::now() < end);
  return Error{Errc::busy, fmt::format("{}: others publish it all the time", model)};
}

// Lost answers need no special case: a retry finds the change in the registry.
Result<bool> EtcdRestore::bring_back(const MirrorChange& change, bool check_only) {
  const auto attempt = [&](const auto& one) -> Result<std::optional<bool>> {
    if constexpr (requires { try_bring_back(one, check_only); })
      return try_bring_back(one, check_only);
    else
      return Error{Errc::internal, "only a version or a tag is brought back"};
  };
  const auto end = Clock::now() + retry_max_;
  for (;;) {
    auto done = std::visit(attempt, change);
    if (!done.ok() && (done.error().code != Errc::timed_out || Clock::now() >= end || client_.stopped()))
      return std::move(done).error();
    if (done.ok() && *done) return **done;
    if (Clock::now() >= end) return Error{Errc::busy, "others change the registry all the time; try again"};
    std::this_thread::sleep_for(kRestorePause);
  }
}

}  // namespace weft
