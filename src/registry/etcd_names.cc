#include "registry/etcd_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "os/sys.h"
#include "registry/etcd_facts.h"
#include "weft/names.h"

namespace weft {
namespace {

using etcd::query_of;
using etcd::RangeQuery;
using etcd::Relation;
using etcd::Target;

constexpr auto kNamesPause = std::chrono::milliseconds(50);    // after a lost answer
constexpr std::size_t kTagsAtOnce = limits::kRegistryTagsMax;  // tags deleted by one transaction
constexpr std::uint64_t kTagsReadMax = 10'000;

Error no_version(std::string_view model, std::uint64_t number) {
  return Error{Errc::not_found, fmt::format("{}: no such version in the cluster", spec_of(model, number))};
}

Error no_tag(std::string_view model, std::string_view tag) {
  return Error{Errc::not_found, fmt::format("{}: no tag {} in the cluster", model, tag)};
}

}  // namespace

Error has_another(std::string_view model, std::uint64_t number) {
  return Error{Errc::exists,
               fmt::format("{}: the registry has another version of this number", spec_of(model, number))};
}

etcd::Put purge_of(const RegistryKeys& keys, const PurgedVersion& version) {
  const std::string key = keys.purge(version.name.model, version.name.number);
  const std::uint64_t time_ns = version.time_ns != 0 ? version.time_ns : now_ns();
  return {key, seal(RegistryPurge{time_ns, version.by, version.uid}, keys.bound(key)), 0};
}

Status check_uid(const VersionRow& row, std::string_view model, std::uint64_t number, const Uuid& expected) {
  return expected.empty() || expected == row.uid ? Status{} : has_another(model, number);
}

namespace {

// Returns the tags of these keys, without the models.
std::vector<std::string> names_of(const std::vector<std::pair<std::string, RegistryTag>>& tags) {
  std::vector<std::string> names;
  for (const auto& [key, tag] : tags) names.push_back(key.substr(key.rfind('@') + 1));
  return names;
}

// Runs `attempt` until it returns a value; after a lost race it returns none. Its argument is true if the answer of an
// earlier attempt was lost: then that attempt may have made a change that is found done.
template <class Attempt>
Result<std::uint64_t> until_won(const etcd::Client& client, std::chrono::milliseconds retry_max, std::string_view what,
                                const Attempt& attempt) {
  const auto end = etcd::Client::Clock::now() + retry_max;
  std::optional<Error> lost;
  do {
    auto revision = attempt(lost.has_value());
    if (revision.ok() && *revision) return **revision;
    if (revision.ok()) continue;
    const Errc code = revision.error().code;
    if (code == Errc::cancelled || (!lost && code != Errc::timed_out)) return std::move(revision).error();
    if (!lost) lost = std::move(revision).error();
    if (client.stopped()) break;
    std::this_thread::sleep_for(kNamesPause);
  } while (etcd::Client::Clock::now() < end);
  if (!lost) return Error{Errc::busy, fmt::format("{}: others change it all the time; try again", what)};
  return Error{Errc::timed_out,
               fmt::format("{}: etcd did not say whether it was changed; it shows if it was: {}", what, lost->message)};
}

}  // namespace

// Number 0 deletes the tag, and ends its protection. Its key stays, so that mirrors learn the time and the author of
// the deletion, which is later than the tag. A value that does not verify is replaced. Returns nothing after a lost
// race.
Result<std::optional<std::uint64_t>> EtcdNames::try_set_tag(std::string_view model, std::string_view tag,
                                                            RegistryTag now, bool may_be_done) {
  const std::string key = keys_.tag(model, tag);
  const std::string to = keys_.version(model, now.number);
  etcd::Txn read;
  read.then.emplace_back(query_of(key));
  if (now.number != 0) read.then.emplace_back(query_of(to));
  WEFT_TRY(const etcd::TxnAnswer facts, client_.txn(read));
  const std::vector<etcd::KeyValue>& known = facts.ranges[0].items;
  const auto value = known.empty() ? Result<RegistryTag>(RegistryTag{}) : open_tag(known[0].value, bound(key));
  const std::uint64_t revision = known.empty() ? 0 : known[0].mod_revision;
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::mod_revision, Relation::equal, revision});
  if (now.number != 0) {
    const std::vector<etcd::KeyValue>& target = facts.ranges[1].items;
    if (target.empty()) return no_version(model, now.number);
    WEFT_TRY(const MirroredVersion version, open_version(target[0].value, bound(to)));
    WEFT_CHECK(check_uid(version.version, model, now.number, now.uid));
    now.uid = version.version.uid;
    txn.compares.push_back({{to, {}}, Target::mod_revision, Relation::equal, target[0].mod_revision});
  }
  const bool done = value.ok() && value->number == now.number && value->uid == now.uid;
  if (done && now.number == 0 && !may_be_done) return no_tag(model, tag);
  if (done) return std::optional(known.empty() ? facts.header.revision : revision);
  now.time_ns = now_ns();
  if (value.ok()) {
    WEFT_CHECK(check_tag_owner(model, tag, value->owner, now.by));
    if (now.number != 0) now.owner = value->owner;
    if (now.number == 0) now.time_ns = std::max(now.time_ns, value->time_ns + 1);
  }
  txn.then.emplace_back(etcd::Put{key, seal(now, bound(key)), 0});
  WEFT_TRY(etcd::TxnAnswer answer, own_.change(std::move(txn)));
  return answer.succeeded ? std::optional(answer.header.revision) : std::nullopt;
}

Result<std::uint64_t> EtcdNames::set_tag(std::string_view model, std::string_view tag,
                                         std::optional<std::uint64_t> number, const Author& by, const Uuid& uid) {
  const RegistryTag wish{number.value_or(0), 0, by, number ? uid : Uuid{}, own_.generation()};
  return until_won(client_, retry_max_, fmt::format("{}@{}", model, tag),
                   [&](bool may_be_done) { return try_set_tag(model, tag, wish, may_be_done); });
}

// Returns nothing after a lost race. The tag keeps its time and who set it.
Result<std::optional<std::uint64_t>> EtcdNames::try_protect_tag(std::string_view model, std::string_view tag, bool on,
                                                                const Author& by) {
  const std::string key = keys_.tag(model, tag);
  WEFT_TRY(const etcd::RangeAnswer known, client_.range(query_of(key)));
  RegistryTag value;
  if (!known.items.empty()) {
    WEFT_TRY(value, open_tag(known.items[0].value, bound(key)));
  }
  if (value.number == 0) return no_tag(model, tag);
  WEFT_CHECK(check_tag_owner(model, tag, value.owner, by));
  if (on == !value.owner.empty()) return std::optional(known.items[0].mod_revision);
  value.owner = on ? by.user : "";
  value.generation = own_.generation();
  value.changed_at = 0;
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::mod_revision, Relation::equal, known.items[0].mod_revision});
  txn.then.emplace_back(etcd::Put{key, seal(value, bound(key)), 0});
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  return answer.succeeded ? std::optional(answer.header.revision) : std::nullopt;
}

Result<std::uint64_t> EtcdNames::protect_tag(std::string_view model, std::string_view tag, bool on, const Author& by) {
  return until_won(client_, retry_max_, fmt::format("{}@{}", model, tag),
                   [&](bool /*may_be_done*/) { return try_protect_tag(model, tag, on, by); });
}

// Returns nothing after a lost race. After a lost answer the next attempt finds the change made.
Result<std::optional<std::uint64_t>> EtcdNames::try_describe(std::string_view model, std::uint64_t number,
                                                             const DescriptionChange& change, const Uuid& uid) {
  const std::string key = keys_.version(model, number);
  WEFT_TRY(const etcd::RangeAnswer known, client_.range(query_of(key)));
  if (known.items.empty()) return no_version(model, number);
  const etcd::KeyValue& item = known.items[0];
  WEFT_TRY(MirroredVersion version, open_version(item.value, bound(key)));
  WEFT_CHECK(check_uid(version.version, model, number, uid));
  WEFT_TRY(const std::optional<VersionRow> now, described(version.version, change, now_ns()));
  if (!now) return std::optional(item.mod_revision);
  version.version = *now;
  return own_.put_again(key, seal(version, bound(key)), item.mod_revision);
}

Result<std::uint64_t> EtcdNames::describe(std::string_view model, std::uint64_t number, const DescriptionChange& change,
                                          const Uuid& uid) {
  return until_won(client_, retry_max_, spec_of(model, number),
                   [&](bool /*may_be_done*/) { return try_describe(model, number, change, uid); });
}

// Returns the tags that lead to this number, with their keys, and sets their revisions. Skips values that do not
// verify. Errc::permission: a tag is protected from `by`.
Result<std::vector<std::pair<std::string, RegistryTag>>> EtcdNames::tags_at(const etcd::RangeAnswer& tags,
                                                                            std::string_view model,
                                                                            std::uint64_t number,
                                                                            const Author& by) const {
  std::vector<std::pair<std::string, RegistryTag>> found;
  for (const etcd::KeyValue& item : tags.items) {
    auto tag = open_tag(item.value, bound(item.key));
    if (!tag.ok() || tag->number != number) continue;
    WEFT_CHECK(check_tag_owner(model, item.key.substr(item.key.rfind('@') + 1), tag->owner, by));
    tag->changed_at = tag->stamp(item.mod_revision).revision;
    found.emplace_back(item.key, std::move(tag).value());
  }
  return found;
}

// Returns nothing if a tag was set after the read, or if the version has more tags than one transaction can delete:
// then it deletes some of the tags, and the next attempt continues.
Result<std::optional<std::uint64_t>> EtcdNames::try_remove(std::string_view model, std::uint64_t number,
                                                           const EtcdRemoval& removal, bool may_be_done) {
  const std::string key = keys_.version(model, number);
  etcd::Txn read;
  read.then.emplace_back(query_of(key));
  read.then.emplace_back(RangeQuery{keys_.tags_of(model), kTagsReadMax, 0, false, false});
  read.then.emplace_back(query_of(keys_.tombstone(model, number), true));
  WEFT_TRY(etcd::TxnAnswer facts, client_.txn(read));
  if (const auto& done = facts.ranges[2].items; may_be_done && !done.empty())
    return std::optional(done[0].mod_revision);
  if (facts.ranges[0].items.empty()) return no_version(model, number);
  const etcd::KeyValue& item = facts.ranges[0].items[0];
  RegistryTombstone tombstone;
  WEFT_TRY(tombstone.version, open_version(item.value, bound(key)));
  WEFT_CHECK(check_uid(tombstone.version.version, model, number, removal.uid));
  if (removal.removed_ns != 0 && removal.removed_ns < tombstone.version.version.undeleted_ns)
    return Error{Errc::exists, fmt::format("{}: it was undeleted later", spec_of(model, number))};
  WEFT_TRY(auto tags, tags_at(facts.ranges[1], model, number, removal.by));
  if (removal.tagged == Tagged::refused && !tags.empty()) return has_tags(model, number, names_of(tags));
  const bool all = tags.size() <= kTagsAtOnce;
  if (!all) tags.resize(kTagsAtOnce);

  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::mod_revision, Relation::equal, item.mod_revision});
  txn.compares.push_back({keys_.tags_of(model), Target::mod_revision, Relation::less, facts.header.revision + 1});
  // Mirrors receive the changes in this order. The removal is first: so a mirror deletes the tags with the version, as
  // a single store does, and never reports that a lost version is on a disk.
  if (all) {
    VersionRow& row = tombstone.version.version;
    row.removed_ns = removal.removed_ns != 0 ? removal.removed_ns : std::max(now_ns(), row.undeleted_ns + 1);
    row.lost = removal.lost;
    tombstone.version.removed_by = removal.by;
    const std::uint64_t published_at = std::exchange(tombstone.version.published_at, 0);
    tombstone.revision = published_at != 0 ? published_at : item.create_revision;  // a description puts the key again
    tombstone.version.tags = names_of(tags);
    tombstone.version.at.generation = own_.generation();
    const std::string gone = keys_.tombstone(model, number);
    const std::string removals = keys_.removals();
    txn.then.emplace_back(etcd::Put{gone, seal(tombstone, bound(gone)), 0});
    txn.then.emplace_back(etcd::Delete{{key, {}}});
    txn.then.emplace_back(etcd::Delete{{keys_.memory(model, number), {}}});
    txn.then.emplace_back(etcd::Put{removals, seal(RegistryMoment{now_ns()}, bound(removals)), 0});
    if (removal.purge) txn.then.emplace_back(purge_of(keys_, *removal.purge));
  }
  // The keys stay, so that a node finds out whether the registry has lost a tag. If the removal was made in a lost
  // history, a deletion has the stamp of the setting that it deletes, so that later settings of the tag count.
  for (const auto& [key_of_tag, tag] : tags) {
    RegistryTag deleted{0, std::max(now_ns(), tag.time_ns + 1), removal.by, {}, own_.generation()};
    if (removal.removed_ns != 0) {
      deleted.generation = tag.generation;
      deleted.changed_at = tag.changed_at;
    }
    txn.then.emplace_back(etcd::Put{key_of_tag, seal(deleted, bound(key_of_tag)), 0});
  }
  WEFT_TRY(etcd::TxnAnswer answer, own_.change(std::move(txn)));
  if (!answer.succeeded || !all) return std::optional<std::uint64_t>();
  return std::optional(answer.header.revision);
}

Result<std::uint64_t> EtcdNames::remove_version(std::string_view model, std::uint64_t number,
                                                const EtcdRemoval& removal) {
  return until_won(client_, retry_max_, spec_of(model, number),
                   [&](bool may_be_done) { return try_remove(model, number, removal, may_be_done); });
}

// A collection of the origin frees the content of versions that were removed until its horizon.
Status EtcdNames::check_uncollected(const VersionRow& row, const etcd::RangeAnswer& collection) const {
  if (collection.items.empty()) return {};
  const etcd::KeyValue& item = collection.items[0];
  WEFT_TRY(const OriginCollection latest, open_collection(item.value, bound(item.key)));
  if (row.removed_ns > latest.horizon_ns) return {};
  return Error{Errc::absent, fmt::format("{}: the origin has freed its content", spec_of(row))};
}

Status EtcdNames::check_unpurged(const VersionName& name, const etcd::RangeAnswer& purge) const {
  if (purge.items.empty()) return {};
  const etcd::KeyValue& item = purge.items[0];
  WEFT_TRY(const RegistryPurge record, open_purge(item.value, bound(item.key)));
  const std::string spec = spec_of(name.model, name.number), when = utc_time(record.time_ns);
  if (record.by.user.empty()) return Error{Errc::absent, fmt::format("{}: it was purged at {}", spec, when)};
  return Error{Errc::absent,
               fmt::format("{}: it was purged at {} by {} on node {}", spec, when, record.by.user, record.by.node)};
}

Status EtcdNames::check_unpurged(const VersionRow& version) {
  const VersionName name{version.model_name, version.number};
  const std::string gone = keys_.tombstone(name.model, name.number);
  etcd::Txn read;
  read.then.emplace_back(query_of(gone));
  read.then.emplace_back(query_of(keys_.purge(name.model, name.number)));
  WEFT_TRY(const etcd::TxnAnswer now, client_.txn(read));
  if (now.ranges[0].items.empty()) return {};  // it is live
  WEFT_TRY(const RegistryTombstone tombstone, open_tombstone(now.ranges[0].items[0].value, bound(gone)));
  WEFT_CHECK(check_uid(tombstone.version.version, name.model, name.number, version.uid));
  return check_unpurged(name, now.ranges[1]);
}

// Returns nothing after a lost race. The new state has a later time than the removal, so that every node knows which
// came last.
Result<std::optional<std::uint64_t>> EtcdNames::try_undelete(const std::string& model, std::uint64_t number,
                                                             const UndeleteWish& wish, UndeletedVersion& done,
                                                             bool may_be_done) {
  const std::string gone = keys_.tombstone(model, number);
  const std::string key = keys_.version(model, number);
  etcd::Txn read;
  read.then.emplace_back(query_of(gone));
  read.then.emplace_back(query_of(key));
  read.then.emplace_back(RangeQuery{keys_.tags_of(model), kTagsReadMax, 0, false, false});
  read.then.emplace_back(query_of(keys_.collection()));
  read.then.emplace_back(query_of(keys_.purge(model, number)));
  WEFT_TRY(etcd::TxnAnswer now, client_.txn(read));
  if (now.ranges[0].items.empty()) {
    if (now.ranges[1].items.empty()) return no_version(model, number);
    if (may_be_done) return std::optional(now.ranges[1].items[0].mod_revision);
    return Error{Errc::exists, fmt::format("{}: it is not removed", spec_of(model, number))};
  }
  const etcd::KeyValue& item = now.ranges[0].items[0];
  WEFT_TRY(RegistryTombstone tombstone, open_tombstone(item.value, bound(gone)));
  MirroredVersion version = std::move(tombstone.version);
  VersionRow& row = version.version;
  WEFT_CHECK(check_uid(row, model, number, wish.uid));
  if (version.tree_nodes == kTreeUnknown)
    return Error{Errc::absent, fmt::format("{}: it was removed in an earlier registry", spec_of(model, number))};
  WEFT_CHECK(check_unpurged({model, number}, now.ranges[4]));
  if (wish.from_origin) WEFT_CHECK(check_uncollected(row, now.ranges[3]));
  WEFT_TRY(const Facts facts, read_facts(model));
  WEFT_CHECK(facts.check_kind(model, row.kind));
  WEFT_CHECK(check_relies(wish.relies));
  if (wish.undeleted_ns != 0 && wish.undeleted_ns <= row.removed_ns)
    return Error{Errc::exists, fmt::format("{}: it was removed later", spec_of(model, number))};
  row.undeleted_ns = wish.undeleted_ns != 0 ? wish.undeleted_ns : std::max(now_ns(), row.removed_ns + 1);
  row.removed = false;
  row.removed_ns = 0;
  version.published_at = tombstone.revision;
  done = {model, number, {}, {}};

  etcd::Txn txn;
  txn.compares.push_back({{gone, {}}, Target::mod_revision, Relation::equal, item.mod_revision});
  txn.compares.push_back({{key, {}}, Target::version, Relation::equal, 0});
  txn.compares.push_back({keys_.tags_of(model), Target::mod_revision, Relation::less, now.header.revision + 1});
  txn.compares.push_back({{keys_.purge(model, number), {}}, Target::version, Relation::equal, 0});
  if (wish.from_origin)
    txn.compares.push_back({{keys_.collection(), {}}, Target::mod_revision, Relation::less, now.header.revision + 1});
  compare_facts(txn, model, facts, wish.relies);
  RegistryHead head = facts.head;
  head.next_number = std::max(head.next_number, number + 1);
  head.kind = row.kind;
  const std::string head_key = keys_.head(model);
  std::vector<std::byte> value = seal(version, bound(key));
  if (value.size() > limits::kRegistryRecordMax)
    return Error{Errc::invalid, fmt::format("{}: its metadata takes {} bytes; expected at most {}",
                                            spec_of(model, number), value.size(), limits::kRegistryRecordMax)};
  txn.then.emplace_back(etcd::Put{head_key, seal(head, bound(head_key)), 0});
  txn.then.emplace_back(etcd::Put{key, std::move(value), 0});
  txn.then.emplace_back(etcd::Delete{{gone, {}}});
  if (wish.in_memory) {
    const std::string memory = keys_.memory(model, number);
    txn.then.emplace_back(etcd::Put{memory, seal(RegistryMoment{row.undeleted_ns, row.uid}, bound(memory)), 0});
  }
  // After an undelete in a lost history, the settings of the tags come back with their own stamps.
  if (wish.undeleted_ns != 0) version.tags.clear();
  for (const std::string& tag : version.tags) {
    std::string tag_key = keys_.tag(model, tag);
    const auto known = std::ranges::find(now.ranges[2].items, tag_key, &etcd::KeyValue::key);
    const auto target = known == now.ranges[2].items.end() ? Result<RegistryTag>(RegistryTag{})
                                                           : open_tag(known->value, bound(tag_key));
    if (target.ok() && target->number != 0) {
      done.moved.push_back({tag, target->number});
      continue;
    }
    done.tags.push_back(tag);
    const RegistryTag set{number, row.undeleted_ns, wish.by, row.uid, own_.generation()};
    txn.then.emplace_back(etcd::Put{tag_key, seal(set, bound(tag_key)), 0});
  }
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  own_.forget(model);
  return answer.succeeded ? std::optional(answer.header.revision) : std::nullopt;
}

Result<UndeleteDecision> EtcdNames::undelete(const std::string& model, std::uint64_t number, const UndeleteWish& wish) {
  UndeleteDecision decision;
  WEFT_TRY(decision.revision, until_won(client_, retry_max_, spec_of(model, number), [&](bool may_be_done) {
             return try_undelete(model, number, wish, decision.done, may_be_done);
           }));
  return decision;
}

// Returns nothing after a lost race. A key of another version stays.
Result<std::optional<std::uint64_t>> EtcdNames::try_keep(std::string_view model, std::uint64_t number,
                                                         const Uuid& uid) {
  const std::string key = keys_.memory(model, number);
  WEFT_TRY(const etcd::RangeAnswer known, client_.range(query_of(key)));
  if (known.items.empty()) return std::optional(known.header.revision);
  const auto moment = open_moment(known.items[0].value, bound(key));
  if (moment.ok() && !uid.empty() && moment->uid != uid) return std::optional(known.header.revision);
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::mod_revision, Relation::equal, known.items[0].mod_revision});
  txn.then.emplace_back(etcd::Delete{{key, {}}});
  WEFT_TRY(const etcd::TxnAnswer answer, own_.change(std::move(txn)));
  return answer.succeeded ? std::optional(answer.header.revision) : std::nullopt;
}

Result<std::uint64_t> EtcdNames::keep_version(std::string_view model, std::uint64_t number, const Uuid& uid) {
  return until_won(client_, retry_max_, spec_of(model, number),
                   [&](bool /*may_be_done*/) { return try_keep(model, number, uid); });
}

}  // namespace weft
