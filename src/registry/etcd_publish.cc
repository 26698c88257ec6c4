// Publishing: reads the facts, then runs one transaction that compares them all.
#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/plain_text.h"
#include "registry/etcd_facts.h"
#include "registry/etcd_names.h"
#include "weft/names.h"

namespace weft {

namespace {

using etcd::Keys;
using etcd::query_of;
using etcd::RangeQuery;
using etcd::Relation;
using etcd::Target;

constexpr std::size_t kFixedCompares = 4;  // the keys r, meta and h, and those of the tags
constexpr auto kPause = std::chrono::milliseconds(50);

RangeQuery first(Keys keys) {
  return {std::move(keys), 1, 0, true, false};
}

std::vector<std::string> ancestors_of(std::string_view model) {
  std::vector<std::string> out;
  for (auto slash = model.rfind('/'); slash != std::string_view::npos; slash = model.rfind('/')) {
    model = model.substr(0, slash);
    out.emplace_back(model);
  }
  return out;
}

Error hides(std::string_view name, std::string_view other) {
  return Error{Errc::exists, fmt::format("model {} would hide {}: one is a directory of the other", name, other)};
}

Error gone(const VersionName& name) {
  return Error{Errc::not_found, fmt::format("{}: this version is not in the cluster any more, and the new version "
                                            "needs its bytes",
                                            spec_of(name.model, name.number))};
}

Status check_tags(const PublishWish& wish) {
  if (wish.tags.size() <= limits::kRegistryTagsMax) return {};
  return Error{Errc::invalid, fmt::format("{}: expected at most {} tags, got {}", wish.version.version.model_name,
                                          limits::kRegistryTagsMax, wish.tags.size())};
}

Error gave_up(std::string_view model, bool unsure) {
  if (!unsure) return Error{Errc::busy, fmt::format("{}: others publish it all the time; try again", model)};
  return Error{Errc::timed_out, fmt::format("{}: etcd did not say whether it took this version; if `weft ls` does not "
                                            "list it, publish it again",
                                            model)};
}

}  // namespace

// Reads the version with the tried number. Skips values that do not verify: this publish cannot have written them.
void EtcdNames::read_tried(const etcd::RangeAnswer& live, const etcd::RangeAnswer& removed, Facts& facts) {
  if (!live.items.empty()) {
    auto version = open_version(live.items[0].value, bound(live.items[0].key));
    if (!version.ok()) return;
    facts.tried = std::move(version->version);
    facts.tried_revision = live.items[0].mod_revision;
  } else if (!removed.items.empty()) {
    auto tombstone = open_tombstone(removed.items[0].value, bound(removed.items[0].key));
    if (!tombstone.ok()) return;
    facts.tried = std::move(tombstone->version.version);
    facts.tried_revision = removed.items[0].mod_revision;
  }
}

// Reads all facts in one transaction. `tried`: also read the version with this number, unless it is 0.
Result<EtcdNames::Facts> EtcdNames::read_facts(const std::string& model, std::uint64_t tried) {
  std::vector<std::string> ancestors = ancestors_of(model);
  etcd::Txn txn;
  txn.then.emplace_back(query_of(keys_.head(model)));
  txn.then.emplace_back(query_of(keys_.removals(), true));
  txn.then.emplace_back(RangeQuery{keys_.versions_of(model), 1, 0, false, true});
  txn.then.emplace_back(first(keys_.versions_below(model)));
  for (const std::string& ancestor : ancestors) txn.then.emplace_back(first(keys_.versions_of(ancestor)));
  const std::size_t tried_at = txn.then.size();
  if (tried != 0) {
    txn.then.emplace_back(query_of(keys_.version(model, tried)));
    txn.then.emplace_back(query_of(keys_.tombstone(model, tried)));
  }
  WEFT_TRY(etcd::TxnAnswer answer, own_.read(std::move(txn)));

  Facts facts;
  facts.header = answer.header;
  if (const auto& heads = answer.ranges[0].items; !heads.empty()) {
    WEFT_TRY(facts.head, open_head(heads[0].value, bound(heads[0].key)));
    facts.head_revision = heads[0].mod_revision;
  }
  if (const auto& removals = answer.ranges[1].items; !removals.empty())
    facts.removals_revision = removals[0].mod_revision;
  if (const auto& newest = answer.ranges[2].items; !newest.empty()) {
    WEFT_TRY(RegistryKey key, keys_.parse(newest[0].key));
    WEFT_TRY(facts.newest_version, open_version(newest[0].value, bound(newest[0].key)));
    facts.newest = key.number;
    facts.newest_revision = newest[0].mod_revision;
  }
  if (tried != 0) read_tried(answer.ranges[tried_at], answer.ranges[tried_at + 1], facts);
  if (!answer.ranges[3].items.empty()) return hides(model, fmt::format("models in {}/", model));
  for (std::size_t i = 0; i < ancestors.size(); ++i)
    if (!answer.ranges[4 + i].items.empty()) return hides(model, ancestors[i]);
  return facts;
}

Status EtcdNames::check_shows(const std::string& model, VersionKind kind) {
  WEFT_TRY(const Facts facts, read_facts(model));
  return facts.check_kind(model, kind);
}

std::shared_ptr<const EtcdNames::Facts> EtcdNames::foresee(const std::string& model) {
  auto facts = read_facts(model);
  return facts.ok() ? std::make_shared<const Facts>(std::move(facts).value()) : nullptr;
}

std::shared_ptr<const EtcdNames::Facts> EtcdNames::recall(const std::string& model, std::uint64_t next_number,
                                                          const VersionRow& newest) {
  const auto known = own_.known_head(model);
  if (!known || known->head.next_number != next_number) return nullptr;
  Facts facts;
  facts.head = known->head;
  facts.head_revision = known->revision;
  facts.newest = newest.number;
  facts.newest_version.version = newest;
  return std::make_shared<const Facts>(std::move(facts));
}

// Returns the prefetched facts once, then reads them. Prefetched facts do not decide that the newest version has this
// content already, since that version may be removed by now.
Result<EtcdNames::Facts> EtcdNames::facts_for(const PublishWish& wish, std::shared_ptr<const Facts>& ahead,
                                              std::uint64_t tried) {
  const auto known = std::exchange(ahead, nullptr);
  if (known && wish.version.version.number == 0 && !known->newest_is(wish.version.version.manifest)) return *known;
  WEFT_TRY(Facts facts, read_facts(wish.version.version.model_name, tried));
  if (facts.tried_is_ours(wish.version.version)) return facts;
  if (facts.tried_revision != 0 && wish.version.version.number != 0)
    return Error{Errc::exists, fmt::format("{}: expected a number that no version of the cluster has had",
                                           spec_of(wish.version.version.model_name, tried))};
  WEFT_CHECK(check_relies(wish.relies));
  return facts;
}

// Errc::not_found names a version that is missing. The publish transaction itself checks that none is removed
// meanwhile.
Status EtcdNames::check_relies(std::span<const VersionName> relies) {
  while (!relies.empty()) {
    auto some = relies.first(std::min(relies.size(), limits::kEtcdOpsMax));
    etcd::Txn txn;
    for (const auto& [model, number] : some) txn.then.emplace_back(query_of(keys_.version(model, number), true));
    WEFT_TRY(etcd::TxnAnswer answer, client_.txn(txn));
    for (std::size_t i = 0; i < some.size(); ++i)
      if (answer.ranges[i].items.empty()) return gone(some[i]);
    relies = relies.subspan(some.size());
  }
  return {};
}

// Sets the tags on the newest version, which has this content already.
Result<PublishDecision> EtcdNames::repeat(const PublishWish& wish, const Facts& facts) {
  PublishDecision decision{facts.newest, false, facts.newest_revision};
  for (const std::string& tag : wish.tags) {
    WEFT_TRY(std::uint64_t revision,
             set_tag(wish.version.version.model_name, tag, facts.newest, wish.by, facts.newest_version.version.uid));
    decision.revision = std::max(decision.revision, revision);
  }
  return decision;
}

Status EtcdNames::Facts::check_kind(const std::string& model, VersionKind kind) const {
  const VersionKind known = newest_version.version.kind;
  if (newest == 0 || known == kind) return {};
  return Error{Errc::exists, fmt::format("{} is the name of a {}: expected the name of a {}", model, kind_name(known),
                                         kind_name(kind))};
}

void EtcdNames::compare_shows(etcd::Txn& txn, const std::string& model) const {
  txn.compares.push_back({keys_.versions_below(model), Target::version, Relation::equal, 0});
  for (const std::string& ancestor : ancestors_of(model))
    txn.compares.push_back({keys_.versions_of(ancestor), Target::version, Relation::equal, 0});
}

// Adds the conditions for a version to become live: no other publish came first, the name hides no other model's, and
// the versions of `relies` are live.
void EtcdNames::compare_facts(etcd::Txn& txn, const std::string& model, const Facts& facts,
                              std::span<const VersionName> relies) const {
  txn.compares.push_back({{keys_.head(model), {}}, Target::mod_revision, Relation::equal, facts.head_revision});
  compare_shows(txn, model);
  const bool one_by_one = relies.size() + txn.compares.size() + kFixedCompares <= limits::kEtcdOpsMax;
  if (!one_by_one)
    txn.compares.push_back({{keys_.removals(), {}}, Target::mod_revision, Relation::equal, facts.removals_revision});
  else
    for (const auto& [name, needed] : relies)
      txn.compares.push_back({{keys_.version(name, needed), {}}, Target::version, Relation::greater, 0});
}

// Adds the tags, which keep their owners. Errc::permission: one is protected from the publisher. A tag of the model
// that is changed after the read loses the race.
Status EtcdNames::set_tags(etcd::Txn& txn, const PublishWish& wish, std::uint64_t number) {
  if (wish.tags.empty()) return {};
  const std::string& model = wish.version.version.model_name;
  etcd::Txn read;
  for (const std::string& tag : wish.tags) read.then.emplace_back(query_of(keys_.tag(model, tag)));
  WEFT_TRY(const etcd::TxnAnswer known, client_.txn(read));
  txn.compares.push_back({keys_.tags_of(model), Target::mod_revision, Relation::less, known.header.revision + 1});
  for (std::size_t i = 0; i < wish.tags.size(); ++i) {
    std::string key = keys_.tag(model, wish.tags[i]);
    RegistryTag now{number, wish.version.version.time_ns, wish.by, wish.version.version.uid, own_.generation()};
    const auto& items = known.ranges[i].items;
    if (const auto value = items.empty() ? Result<RegistryTag>(RegistryTag{}) : open_tag(items[0].value, bound(key));
        value.ok()) {
      WEFT_CHECK(check_tag_owner(model, wish.tags[i], value->owner, wish.by));
      now.owner = value->owner;
    }
    txn.then.emplace_back(etcd::Put{key, seal(now, bound(key)), 0});
  }
  return {};
}

// Returns nothing after a lost race. Sets `tried` to the number.
Result<std::optional<PublishDecision>> EtcdNames::try_publish(const PublishWish& wish, const Facts& facts,
                                                              std::uint64_t& tried) {
  const std::string& model = wish.version.version.model_name;
  const std::uint64_t given = wish.version.version.number;
  const std::uint64_t number = tried = given != 0 ? given : std::max(facts.head.next_number, wish.number_min);
  if (number >= limits::kVersionNumberMax)
    return Error{Errc::invalid, fmt::format("{}: expected at most {} versions", model, limits::kVersionNumberMax)};
  WEFT_CHECK(facts.check_kind(model, wish.version.version.kind));
  etcd::Txn txn;
  if (given != 0)
    for (const std::string& absent : {keys_.version(model, number), keys_.tombstone(model, number)})
      txn.compares.push_back({{absent, {}}, Target::version, Relation::equal, 0});
  compare_facts(txn, model, facts, wish.relies);
  const std::uint64_t time_ns = wish.version.version.time_ns;
  const VersionKind kind = wish.version.version.kind;
  RegistryHead head{std::max(number + 1, facts.head.next_number),
                    facts.head_revision == 0 ? time_ns : facts.head.created_ns, kind};
  std::string head_key = keys_.head(model);
  std::string key = keys_.version(model, number);
  std::vector<std::byte> value = seal(wish.version, bound(key));
  if (value.size() > limits::kRegistryRecordMax)
    return Error{Errc::invalid, fmt::format("{}: its metadata takes {} bytes; expected at most {}", model, value.size(),
                                            limits::kRegistryRecordMax)};
  txn.then.emplace_back(etcd::Put{head_key, seal(head, bound(head_key)), 0});
  txn.then.emplace_back(etcd::Put{key, std::move(value), 0});
  if (wish.version.in_memory) {
    const std::string memory = keys_.memory(model, number);
    txn.then.emplace_back(etcd::Put{memory, seal(RegistryMoment{time_ns, wish.version.version.uid}, bound(memory)), 0});
  }
  WEFT_CHECK(set_tags(txn, wish, number));
  WEFT_TRY(etcd::TxnAnswer answer, own_.change(std::move(txn)));
  log_debug(LogCategory::registry, "publish of {}@{}: {} at revision {}", model, number,
            answer.succeeded ? "committed" : "another publish came first", answer.header.revision);
  if (!answer.succeeded) {
    own_.forget(model);
    return std::optional<PublishDecision>();
  }
  own_.remember(model, head, answer.header.revision);
  return std::optional<PublishDecision>({number, true, answer.header.revision});
}

Result<PublishDecision> EtcdNames::publish(const PublishWish& wish, std::shared_ptr<const Facts> ahead) {
  const VersionRow& row = wish.version.version;
  WEFT_CHECK(check_tags(wish));
  const auto end = Clock::now() + retry_max_;
  // The last number suffices: another one is tried only after the head has moved, when the outcome of the last is
  // known.
  std::uint64_t tried = row.number;
  bool unsure = false;           // the outcome of an earlier transaction is unknown
  std::optional<Error> refused;  // no_space of the last transaction, which may have been executed: the next read shows
  for (;;) {
    const bool foreseen = ahead != nullptr;
    auto facts = facts_for(wish, ahead, tried);
    if (!facts.ok() && !unsure && !refused) return std::move(facts).error();
    if (!facts.ok() && facts.error().code == Errc::cancelled) break;
    // An answer may get lost, and a lower layer may repeat the transaction. So this publish is recognized by its
    // content. Other nodes may meanwhile have published newer versions, or removed this one.
    if (facts.ok() && facts->tried_is_ours(row)) return PublishDecision{tried, true, facts->tried_revision};
    if (facts.ok() && row.number == 0 && facts->newest_is(row.manifest)) return repeat(wish, *facts);
    if (facts.ok() && refused && !unsure) return std::move(*refused);
    if (facts.ok()) {
      auto decision = try_publish(wish, *facts, tried);
      if (decision.ok() && *decision) return **decision;
      const Errc code = decision.ok() ? Errc::changed : decision.error().code;
      if (code == Errc::no_space)
        refused = std::move(decision).error();
      else if (!decision.ok() && code != Errc::timed_out && !unsure)
        return std::move(decision).error();
      unsure = unsure || code == Errc::timed_out;
    }
    if (Clock::now() >= end) break;
    if (!foreseen) std::this_thread::sleep_for(kPause);
  }
  return gave_up(row.model_name, unsure || refused);
}

}  // namespace weft
