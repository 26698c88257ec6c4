#include "registry/own_registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "diskformat/uuid.h"
#include "os/sys.h"
#include "weft/names.h"

namespace weft {
namespace {

using etcd::query_of;
using etcd::Relation;
using etcd::Target;

constexpr std::size_t kHeadsMax = 4'096;       // cached heads
constexpr std::uint64_t kSharesPerAnswer = 8;  // they fit in an answer even if each has kRegistryRecordMax bytes

}  // namespace

Error lost_history(std::string_view what) {
  return Error{Errc::unreachable, fmt::format("the registry has lost history ({}): names cannot be changed until `weft "
                                              "cluster reconcile` has run on a node",
                                              what)};
}

Result<RegistryMeta> OwnRegistry::agree(std::string_view own, etcd::Header& header) {
  const std::string key = keys_.meta();
  for (;;) {
    etcd::Txn read;
    read.then.emplace_back(query_of(key));
    read.then.emplace_back(query_of(keys_.history(), true));
    WEFT_TRY(etcd::TxnAnswer answer, client_.txn(read));
    header = answer.header;
    if (std::vector<etcd::KeyValue>& found = answer.ranges[0].items; !found.empty()) {
      WEFT_TRY(RegistryMeta meta, open_meta(found[0].value, keys_.bound(key)));
      const auto& history = answer.ranges[1].items;
      if (own.empty() || own == meta.cluster)
        found_ours(std::move(found[0].value), meta, history.empty() ? 0 : history[0].mod_revision);
      return meta;
    }
    if (!own.empty())
      return Error{Errc::not_found, fmt::format("etcd has nothing at {}, and this store is of the cluster {}: its "
                                                "registry was lost, or is elsewhere; if it was lost, run `weft cluster "
                                                "reconcile` on a node",
                                                key, own)};
    const std::uint64_t now = now_ns();
    WEFT_CHECK(create({kRegistryFormat, random_uuid(), now, now, {}}));  // the next read shows which node won
  }
}

// No effect if etcd has a registry.
Status OwnRegistry::create(const RegistryMeta& meta) {
  const std::string key = keys_.meta();
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::version, Relation::equal, 0});
  txn.then.emplace_back(etcd::Put{key, seal(meta, keys_.bound(key)), 0});
  put_history(txn);
  WEFT_CHECK(client_.txn(txn));
  return {};
}

OwnRegistry::Ours OwnRegistry::ours() const {
  const MutexLock lock(mutex_);
  return ours_;
}

std::uint64_t OwnRegistry::generation() const {
  const MutexLock lock(mutex_);
  return ours_.meta.generation;
}

bool OwnRegistry::has_identity(std::span<const std::byte> value) const {
  const MutexLock lock(mutex_);
  return std::ranges::equal(value, ours_.value);
}

std::string OwnRegistry::lost() const {
  const MutexLock lock(mutex_);
  return ours_.meta.lost;
}

// Stores the registry's identity and drops cached heads: those of another registry may have equal revisions by chance.
void OwnRegistry::found_ours(std::vector<std::byte> value, const RegistryMeta& meta, std::uint64_t history) {
  const MutexLock lock(mutex_);
  ours_ = {std::move(value), meta, history};
  heads_.clear();
}

void OwnRegistry::saw_history(std::uint64_t revision) {
  const MutexLock lock(mutex_);
  ours_.history = std::max(ours_.history, revision);
}

Status OwnRegistry::check_ours(std::span<const etcd::KeyValue> found, const Ours& ours) const {
  if (ours.value.empty() || (!found.empty() && std::ranges::equal(found[0].value, ours.value))) return {};
  const auto meta = found.empty() ? Result<RegistryMeta>(Error{Errc::not_found, {}})
                                  : open_meta(found[0].value, keys_.bound(keys_.meta()));
  if (meta.ok() && meta->cluster == ours.meta.cluster) {
    if (!meta->lost.empty()) return lost_history(meta->lost);
    return Error{Errc::unreachable,
                 "the registry has just been reconciled, and this node has not followed yet; try again"};
  }
  return Error{Errc::not_found,
               fmt::format("etcd has {} at {}: the registry of this node's cluster was lost, or is elsewhere",
                           found.empty() ? "nothing" : "another cluster", keys_.meta())};
}

void OwnRegistry::compare_ours(etcd::Txn& txn, const Ours& ours) const {
  if (ours.value.empty()) return;
  txn.compares.push_back({{keys_.meta(), {}}, Target::value, Relation::equal, 0, ours.value});
  if (ours.history != 0)
    txn.compares.push_back({{keys_.history(), {}}, Target::mod_revision, Relation::greater, ours.history - 1});
}

void OwnRegistry::put_history(etcd::Txn& txn) const {
  const std::string key = keys_.history();
  txn.then.emplace_back(etcd::Put{key, seal(RegistryMoment{now_ns(), random_id()}, keys_.bound(key)), 0});
}

// A registry that was recreated or set back meanwhile lacks the versions that the change depends on, and may lose the
// change.
Result<etcd::TxnAnswer> OwnRegistry::change(etcd::Txn txn) {
  const Ours ours = this->ours();
  if (!ours.meta.lost.empty()) return lost_history(ours.meta.lost);
  compare_ours(txn, ours);
  put_history(txn);
  WEFT_TRY(etcd::TxnAnswer answer, client_.txn(txn));
  if (answer.succeeded || ours.value.empty()) return answer;
  etcd::Txn read;
  read.then.emplace_back(query_of(keys_.meta()));
  read.then.emplace_back(query_of(keys_.history(), true));
  WEFT_TRY(const etcd::TxnAnswer now, client_.txn(read));
  WEFT_CHECK(check_ours(now.ranges[0].items, ours));
  const auto& history = now.ranges[1].items;
  if (history.empty() || history[0].mod_revision < ours.history)
    return Error{Errc::unreachable, "etcd was set back to an older state, which this node has not read yet; try again"};
  return answer;
}

Result<etcd::TxnAnswer> OwnRegistry::read(etcd::Txn txn) {
  const Ours ours = this->ours();
  txn.then.emplace_back(query_of(keys_.meta()));
  WEFT_TRY(etcd::TxnAnswer answer, client_.txn(txn));
  WEFT_CHECK(check_ours(answer.ranges.back().items, ours));
  answer.ranges.pop_back();
  return answer;
}

Status OwnRegistry::report_loss(std::string_view what) {
  const Ours ours = this->ours();
  if (!ours.meta.lost.empty()) return {};
  RegistryMeta meta = ours.meta;
  meta.lost = what;
  const std::string key = keys_.meta();
  std::vector<std::byte> value = seal(meta, keys_.bound(key));
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::value, Relation::equal, 0, ours.value});
  txn.then.emplace_back(etcd::Put{key, value, 0});
  WEFT_TRY(const etcd::TxnAnswer answer, client_.txn(txn));
  if (!answer.succeeded) return Error{Errc::changed, "another node has changed the registry's state meanwhile"};
  found_ours(std::move(value), meta, 0);
  return {};
}

Result<std::uint64_t> OwnRegistry::begin_generation(std::string_view own, std::uint64_t known) {
  const std::string key = keys_.meta();
  for (;;) {
    WEFT_TRY(const etcd::RangeAnswer now, client_.range(query_of(key)));
    RegistryMeta meta{kRegistryFormat, std::string(own), now_ns(), 0, {}};
    if (!now.items.empty()) {
      WEFT_TRY(meta, open_meta(now.items[0].value, keys_.bound(key)));
      if (meta.cluster != own)
        return Error{Errc::not_found, fmt::format("etcd has the cluster {} at {}, and this store is of the cluster {}",
                                                  meta.cluster, key, own)};
      if (meta.lost.empty() && meta.generation > known) return meta.generation;
    }
    meta.generation = std::max({known + 1, meta.generation + 1, now_ns()});
    meta.lost.clear();
    if (now.items.empty()) {
      WEFT_CHECK(create(meta));
      continue;
    }
    etcd::Txn txn;
    txn.compares.push_back({{key, {}}, Target::mod_revision, Relation::equal, now.items[0].mod_revision});
    txn.then.emplace_back(etcd::Put{key, seal(meta, keys_.bound(key)), 0});
    WEFT_CHECK(client_.txn(txn));  // the next read shows which node won
  }
}

Status OwnRegistry::complete_generation(std::string_view node, const RegistryShare& share) {
  const std::string key = keys_.share(node);
  etcd::Txn txn;
  compare_ours(txn, ours());
  txn.then.emplace_back(etcd::Put{key, seal(share, keys_.bound(key)), 0});
  WEFT_TRY(const etcd::TxnAnswer answer, client_.txn(txn));
  if (answer.succeeded) return {};
  return Error{Errc::changed, "the registry has changed while this node read it"};
}

Result<std::map<std::string, RegistryShare>> OwnRegistry::shares() {
  std::map<std::string, RegistryShare> shares;
  WEFT_CHECK(etcd::each_page(client_, {keys_.all(KeyKind::share), kSharesPerAnswer, 0, false, false},
                             [&](const etcd::RangeAnswer& page) {
                               for (const etcd::KeyValue& item : page.items) {
                                 const auto key = keys_.parse(item.key);
                                 auto share = open_share(item.value, keys_.bound(item.key));
                                 if (key.ok() && share.ok()) shares.emplace(key->name, std::move(share).value());
                               }
                             }));
  return shares;
}

Result<std::optional<RegistryShare>> OwnRegistry::share(std::string_view node) {
  const std::string key = keys_.share(node);
  WEFT_TRY(const etcd::RangeAnswer found, client_.range(query_of(key)));
  if (found.items.empty()) return std::optional<RegistryShare>();
  auto share = open_share(found.items[0].value, keys_.bound(key));
  return share.ok() ? std::optional(std::move(share).value()) : std::nullopt;
}

Result<std::uint64_t> OwnRegistry::barrier(std::string_view node, std::string_view value) {
  const auto bytes = std::as_bytes(std::span(value));
  etcd::Txn txn;
  const Ours ours = this->ours();
  compare_ours(txn, ours);
  txn.then.emplace_back(etcd::Put{keys_.barrier(node), {bytes.begin(), bytes.end()}, 0});
  WEFT_TRY(etcd::TxnAnswer answer, client_.txn(txn));
  if (!answer.succeeded) {
    WEFT_TRY(const etcd::RangeAnswer now, client_.range(query_of(keys_.meta())));
    WEFT_CHECK(check_ours(now.items, ours));
    return Error{Errc::busy, "the registry was away for a moment; try again"};
  }
  return answer.header.revision;
}

Result<std::optional<std::uint64_t>> OwnRegistry::put_again(const std::string& key, std::vector<std::byte> value,
                                                            std::uint64_t revision) {
  if (value.size() > limits::kRegistryRecordMax)
    return Error{Errc::invalid, fmt::format("{}: its metadata takes {} bytes; expected at most {}", keys_.bound(key),
                                            value.size(), limits::kRegistryRecordMax)};
  etcd::Txn txn;
  txn.compares.push_back({{key, {}}, Target::mod_revision, Relation::equal, revision});
  txn.then.emplace_back(etcd::Put{key, std::move(value), 0});
  WEFT_TRY(const etcd::TxnAnswer answer, change(std::move(txn)));
  return answer.succeeded ? std::optional(answer.header.revision) : std::nullopt;
}

std::optional<OwnRegistry::KnownHead> OwnRegistry::known_head(const std::string& model) {
  const MutexLock lock(mutex_);
  const auto known = heads_.find(model);
  return known == heads_.end() ? std::nullopt : std::optional(known->second);
}

void OwnRegistry::remember(const std::string& model, const RegistryHead& head, std::uint64_t revision) {
  const MutexLock lock(mutex_);
  if (heads_.size() >= kHeadsMax && !heads_.contains(model)) heads_.clear();
  KnownHead& known = heads_[model];
  if (revision > known.revision) known = {head, revision};
}

void OwnRegistry::forget(const std::string& model) {
  const MutexLock lock(mutex_);
  heads_.erase(model);
}

void OwnRegistry::saw_head(const std::string& model, const etcd::Event& event) {
  {
    const MutexLock lock(mutex_);
    if (!heads_.contains(model)) return;
  }
  const auto head = event.deleted ? Result<RegistryHead>(Error{Errc::not_found, {}})
                                  : open_head(event.item.value, keys_.bound(event.item.key));
  if (!head.ok()) return forget(model);
  remember(model, *head, event.item.mod_revision);
}

}  // namespace weft
