#include "registry/etcd_restore.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>

#include "base/limits.h"
#include "base/plain_text.h"
#include "registry/etcd_facts.h"
#include "weft/names.h"

namespace weft {

// The registry's state of a version to restore, at one revision.
struct EtcdRestore::Returning {
  std::uint64_t revision = 0;
  RegistryHead head;
  std::uint64_t head_revision = 0;                // 0: the model does not exist yet
  bool taken = false;                             // some version has the number
  std::optional<MirroredVersion> live = {};       // the version itself
  std::optional<RegistryTombstone> removed = {};  // the same
  std::uint64_t at = 0;                           // revision of its key
};

namespace {

using etcd::query_of;
using etcd::Relation;
using etcd::Target;

constexpr auto kRestorePause = std::chrono::milliseconds(50);

PurgedVersion at_number(PurgedVersion purge, std::uint64_t number) {
  purge.name.number = number;
  return purge;
}

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
  if (const auto& live = answer.ranges[1].items; !live.empty()) {
    WEFT_TRY(MirroredVersion known, open_version(live[0].value, keys_.bound(live[0].key)));
    now.taken = true;
    now.at = live[0].mod_revision;
    if (known.version.uid == row.uid) now.live = std::move(known);
  } else if (const auto& gone = answer.ranges[2].items; !gone.empty()) {
    WEFT_TRY(RegistryTombstone known, open_tombstone(gone[0].value, keys_.bound(gone[0].key)));
    now.taken = true;
    now.at = gone[0].mod_revision;
    if (known.version.version.uid == row.uid) now.removed = std::move(known);
  }
  return now;
}

// Returns the registry's record `there` with the later description and the later time of the node's `version`. The
// record stays live, or removed.
MirroredVersion EtcdRestore::joined(const MirroredVersion& version, MirroredVersion there) {
  const VersionRow& row = version.version;
  VersionRow& known = there.version;
  if (row.described_ns > known.described_ns) copy_description(row, known);
  if (!is_decided_later(row, known)) return there;
  if (!row.removed && known.removed) {
    // The undelete needs the inode numbers, which a node that had freed the content did not know.
    if (there.tree_nodes == kTreeUnknown) there.tree_nodes = version.tree_nodes;
  } else if (!row.removed) {
    known.undeleted_ns = row.undeleted_ns;
  } else if (known.removed) {
    known.undeleted_ns = row.undeleted_ns;
    known.removed_ns = row.removed_ns;
    known.lost = row.lost;
    there.removed_by = version.removed_by;
    there.tags = version.tags;
  }
  return there;
}

// Writes the later state of a version that etcd has, and its later description. Returns its number; nothing after a
// lost race.
Result<std::optional<std::uint64_t>> EtcdRestore::try_return(const MirroredVersion& version, const Returning& now,
                                                             const PurgedVersion* purge) {
  const VersionRow& row = version.version;
  const std::string key =
      now.live ? keys_.version(row.model_name, row.number) : keys_.tombstone(row.model_name, row.number);
  const auto value = [&](const MirroredVersion& of) {
    return now.live ? seal(of, keys_.bound(key)) : seal(RegistryTombstone{of, now.removed->revision}, keys_.bound(key));
  };
  const MirroredVersion& there = now.live ? *now.live : now.removed->version;
  if (auto changed = value(joined(version, there)); changed != value(there)) {
    WEFT_TRY(const auto put, own_.put_again(key, std::move(changed), now.at));
    if (!put) return std::optional<std::uint64_t>();
  }
  const std::optional<std::uint64_t> done(row.number);
  if (row.removed == there.version.removed || !is_decided_later(row, there.version)) return done;
  if (row.removed) {
    EtcdRemoval removal{Tagged::removed, row.lost, version.removed_by, row.uid, row.removed_ns};
    if (purge != nullptr) removal.purge = at_number(*purge, row.number);
    WEFT_CHECK(names_.remove_version(row.model_name, row.number, removal));
    return done;
  }
  UndeleteWish wish;
  wish.in_memory = version.in_memory;
  wish.uid = row.uid;
  wish.undeleted_ns = row.undeleted_ns;
  WEFT_CHECK(names_.undelete(row.model_name, row.number, wish));
  return done;
}

// A purge decides against each undelete. The removal gets the time of the undelete, so that it is the later state on
// all nodes.
Result<std::optional<std::uint64_t>> EtcdRestore::stay_removed(const VersionRow& row, const Returning& now) {
  const std::string key = keys_.tombstone(row.model_name, row.number);
  RegistryTombstone tombstone = *now.removed;
  std::uint64_t& removed_ns = tombstone.version.version.removed_ns;
  removed_ns = std::max(removed_ns, row.undeleted_ns);
  WEFT_TRY(const auto put, own_.put_again(key, seal(tombstone, keys_.bound(key)), now.at));
  return put ? std::optional(row.number) : std::nullopt;
}

// Adds a version that the registry lacks. Returns its number; nothing after a lost race.
Result<std::optional<EtcdRestore::Placed>> EtcdRestore::try_place(MirroredVersion version, const Returning& now,
                                                                  OfNumber taken, const PurgedVersion* purge) {
  VersionRow& row = version.version;
  const std::string& model = row.model_name;
  if (now.taken && taken == OfNumber::refused) return has_another(model, row.number);
  std::uint64_t number = row.number;
  if (now.taken) {
    number = std::max(now.head.next_number, row.number + 1);
    if (version.former.size() == limits::kFormerNumbersMax) version.former.erase(version.former.begin());
    version.former.push_back(row.number);
  }
  if (number >= limits::kVersionNumberMax)
    return Error{Errc::invalid, fmt::format("{}: expected at most {} versions", model, limits::kVersionNumberMax)};
  if (!row.removed) WEFT_CHECK(names_.check_shows(model, row.kind));
  if (taken == OfNumber::renumbered) version.returned = own_.generation();
  const std::string head_key = keys_.head(model);
  const std::string key = row.removed ? keys_.tombstone(model, number) : keys_.version(model, number);
  const RegistryHead head{std::max(now.head.next_number, number + 1),
                          now.head_revision == 0 ? row.time_ns : now.head.created_ns, row.kind};
  // With the current revision a tombstone sorts after the versions restored before it (RegistryList).
  std::vector<std::byte> value =
      row.removed ? seal(RegistryTombstone{version, now.revision}, keys_.bound(key)) : seal(version, keys_.bound(key));
  if (value.size() > limits::kRegistryRecordMax)
    return Error{Errc::invalid, fmt::format("{}: its metadata takes {} bytes; expected at most {}",
                                            spec_of(model, row.number), value.size(), limits::kRegistryRecordMax)};
  etcd::Txn txn;
  txn.compares.push_back({{head_key, {}}, Target::mod_revision, Relation::equal, now.head_revision});
  for (const std::string& absent : {keys_.version(model, number), keys_.tombstone(model, number)})
    txn.compares.push_back({{absent, {}}, Target::version, Relation::equal, 0});
  txn.then.emplace_back(etcd::Put{head_key, seal(head, keys_.bound(head_key)), 0});
  txn.then.emplace_back(etcd::Put{key, std::move(value), 0});
  if (version.in_memory && !row.removed) {
    const std::string memory = keys_.memory(model, number);
    txn.then.emplace_back(etcd::Put{memory, seal(RegistryMoment{row.time_ns, row.uid}, keys_.bound(memory)), 0});
  }
  if (!row.removed) names_.compare_shows(txn, model);
  if (purge != nullptr && row.removed) txn.then.emplace_back(purge_of(keys_, at_number(*purge, number)));
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  own_.forget(model);
  return answer.succeeded ? std::optional(Placed{number, answer.header.revision}) : std::nullopt;
}

// Returns nothing after a lost race. A live version that the registry has may only get a later message and metrics.
Result<std::optional<bool>> EtcdRestore::try_bring_back(const MirroredVersion& version, bool check_only) {
  const VersionRow& row = version.version;
  WEFT_TRY(const Returning now, read_returning(version));
  if (now.live && row.removed)
    return Error{Errc::exists,
                 fmt::format("{}: it was removed, and the registry has it", spec_of(row.model_name, row.number))};
  const bool there = now.live || now.removed;
  if (now.taken && !there) return has_another(row.model_name, row.number);
  const bool needed = !there || (now.live && row.described_ns > now.live->version.described_ns);
  if (check_only && !there && !row.removed) WEFT_CHECK(names_.check_shows(row.model_name, row.kind));
  if (check_only || !needed) return std::optional(needed);
  if (there) {
    WEFT_TRY(const auto returned, try_return(version, now, nullptr));
    return returned ? std::optional(true) : std::nullopt;
  }
  WEFT_TRY(const auto placed, try_place(version, now, OfNumber::refused, nullptr));
  return placed ? std::optional(true) : std::nullopt;
}

// If etcd has this setting of the tag, or a later one, the key stays unchanged.
Result<std::optional<bool>> EtcdRestore::try_bring_back(const MirroredTag& tag, bool check_only) {
  const std::string key = keys_.tag(tag.model, tag.name);
  const std::string to = keys_.version(tag.model, tag.number);
  if (check_only) return std::optional(true);
  etcd::Txn read;
  read.then.emplace_back(query_of(key));
  read.then.emplace_back(query_of(to));
  WEFT_TRY(const etcd::TxnAnswer now, client_.txn(read));
  const std::vector<etcd::KeyValue>&known = now.ranges[0].items, &target = now.ranges[1].items;
  if (!known.empty()) {
    const auto said = open_tag(known[0].value, keys_.bound(key));
    if (!said.ok() || said->order(known[0].mod_revision) >= tag.order()) return std::optional(false);
  }
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::mod_revision, Relation::equal, known.empty() ? 0 : known[0].mod_revision});
  if (tag.number != 0) {
    if (target.empty()) return std::optional(false);
    WEFT_TRY(const MirroredVersion version, open_version(target[0].value, keys_.bound(to)));
    if (version.version.uid != tag.uid) return has_another(tag.model, tag.number);
    txn.compares.push_back({{to, {}}, Target::mod_revision, Relation::equal, target[0].mod_revision});
  }
  const RegistryTag value{tag.number,     tag.time_ns,  tag.by,   tag.number == 0 ? Uuid{} : tag.uid,
                          tag.generation, tag.revision, tag.owner};
  txn.then.emplace_back(etcd::Put{key, seal(value, keys_.bound(key)), 0});
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  return answer.succeeded ? std::optional(true) : std::nullopt;
}

// Raises the next numbers first, and then ends: so a version that moves takes no number of another version of the
// store. One attempt per version. `moved` has the numbers in etcd of versions that the store has under other numbers.
Status EtcdRestore::reconcile(const Lacking& lacking, std::uint64_t listed, Impossible& impossible,
                              const RefusalSink& refused) {
  for (const auto& [model, ahead] : lacking.ahead) WEFT_CHECK(raise(model, ahead));
  if (!lacking.ahead.empty()) return {};
  std::map<VersionName, std::uint64_t> moved = lacking.moved;
  std::map<std::string, std::uint64_t> heads;  // revisions of heads that this call has put
  for (MirroredVersion version : lacking.versions) {
    const VersionName name{version.version.model_name, version.version.number};
    for (ParentRef& parent : version.version.parents)
      if (const auto at = moved.find({parent.model, parent.number}); at != moved.end()) parent.number = at->second;
    const auto purged = lacking.purged.find({name.model, version.version.uid});
    const PurgedVersion* const purge = purged == lacking.purged.end() ? nullptr : &purged->second;
    const auto merged = merge(version, purge, listed, heads[name.model]);
    if (!merged.ok() && !is_permanent(merged.error())) return merged.error();
    if (!merged.ok()) {
      impossible.add(version.version, merged.error().message);
      refused(merged.error());
      continue;
    }
    if (!*merged) return {};
    if (**merged != name.number) moved[name] = **merged;
  }
  for (MirroredTag tag : lacking.tags) {
    if (impossible.has(tag)) continue;
    if (const auto at = moved.find({tag.model, tag.number}); at != moved.end()) tag.number = at->second;
    const auto done = bring_back(tag, false);
    if (!done.ok() && !is_permanent(done.error())) return done.error();
    if (!done.ok()) {
      impossible.add(tag, done.error().message);
      refused(done.error());
    }
  }
  return {};
}

// Returns the version's number in the registry; nothing if the registry has changed since the list.
Result<std::optional<std::uint64_t>> EtcdRestore::merge(const MirroredVersion& version, const PurgedVersion* purge,
                                                        std::uint64_t listed, std::uint64_t& head_put) {
  WEFT_TRY(const Returning now, read_returning(version));
  if (now.live || now.removed) {
    if (now.removed && !version.version.removed) {
      const Status unpurged = names_.check_unpurged(version.version);
      if (!unpurged.ok() && unpurged.error().code == Errc::absent) return stay_removed(version.version, now);
      WEFT_CHECK(unpurged);
      WEFT_CHECK(names_.check_shows(version.version.model_name, version.version.kind));
    }
    auto returned = try_return(version, now, purge);
    const bool raced =
        !returned.ok() && (returned.error().code == Errc::not_found || returned.error().code == Errc::exists);
    return raced ? Result(std::optional<std::uint64_t>()) : std::move(returned);
  }
  if (now.head_revision > listed && now.head_revision != head_put) return std::optional<std::uint64_t>();
  WEFT_TRY(const auto placed, try_place(version, now, OfNumber::renumbered, purge));
  if (!placed) return std::optional<std::uint64_t>();
  head_put = placed->revision;
  return std::optional(placed->number);
}

// Raises the model's next number. A registry that was set back would otherwise use numbers again that a store has.
Status EtcdRestore::raise(const std::string& model, const Lacking::Ahead& ahead) {
  const std::string key = keys_.head(model);
  const auto end = Clock::now() + retry_max_;
  do {
    WEFT_TRY(const etcd::RangeAnswer known, client_.range(query_of(key)));
    const std::uint64_t revision = known.items.empty() ? 0 : known.items[0].mod_revision;
    RegistryHead head{0, ahead.created_ns};
    if (revision != 0) {
      WEFT_TRY(head, open_head(known.items[0].value, keys_.bound(key)));
    }
    if (head.next_number >= ahead.next_number) return {};
    head.next_number = ahead.next_number;
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
