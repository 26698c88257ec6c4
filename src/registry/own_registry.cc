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

constexpr std::size_t kHeadsMax = 4'096;  // cached heads

}  // namespace

Result<RegistryMeta> OwnRegistry::agree(std::string_view own, etcd::Header& header) {
  const std::string key = keys_.meta();
  for (;;) {
    WEFT_TRY(etcd::RangeAnswer answer, client_.range(query_of(key)));
    header = answer.header;
    if (!answer.items.empty()) {
      WEFT_TRY(RegistryMeta meta, open_meta(answer.items[0].value, keys_.bound(key)));
      if (own.empty() || own == meta.cluster) found_ours(std::move(answer.items[0].value));
      return meta;
    }
    if (!own.empty())
      return Error{Errc::not_found, fmt::format("etcd has nothing at {}, and this store is of the cluster {}: its "
                                                "registry was lost, or is elsewhere",
                                                key, own)};
    etcd::Txn txn;
    txn.compares.push_back({{key, {}}, Target::version, Relation::equal, 0});
    txn.then.emplace_back(
        etcd::Put{key, seal(RegistryMeta{kRegistryFormat, random_uuid(), now_ns()}, keys_.bound(key)), 0});
    WEFT_CHECK(client_.txn(txn));  // the next read shows which node won
  }
}

std::vector<std::byte> OwnRegistry::ours() {
  const MutexLock lock(mutex_);
  return ours_;
}

// Stores the registry's identity and drops cached heads: those of another registry may have equal revisions by chance.
void OwnRegistry::found_ours(std::vector<std::byte> value) {
  const MutexLock lock(mutex_);
  ours_ = std::move(value);
  heads_.clear();
}

Status OwnRegistry::check_ours(std::span<const etcd::KeyValue> found, std::span<const std::byte> ours) const {
  if (ours.empty() || (!found.empty() && std::ranges::equal(found[0].value, ours))) return {};
  return Error{Errc::not_found,
               fmt::format("etcd has {} at {}: the registry of this node's cluster was lost, or is elsewhere",
                           found.empty() ? "nothing" : "another cluster", keys_.meta())};
}

// A registry that was recreated meanwhile lacks the versions that the change depends on, and may lose the change.
Result<etcd::TxnAnswer> OwnRegistry::change(etcd::Txn txn) {
  const std::vector<std::byte> ours = this->ours();
  if (!ours.empty()) txn.compares.push_back({{keys_.meta(), {}}, Target::value, Relation::equal, 0, ours});
  WEFT_TRY(etcd::TxnAnswer answer, client_.txn(txn));
  if (answer.succeeded || ours.empty()) return answer;
  WEFT_TRY(const etcd::RangeAnswer now, client_.range(query_of(keys_.meta())));
  WEFT_CHECK(check_ours(now.items, ours));
  return answer;
}

Result<etcd::TxnAnswer> OwnRegistry::read(etcd::Txn txn) {
  const std::vector<std::byte> ours = this->ours();
  txn.then.emplace_back(query_of(keys_.meta()));
  WEFT_TRY(etcd::TxnAnswer answer, client_.txn(txn));
  WEFT_CHECK(check_ours(answer.ranges.back().items, ours));
  answer.ranges.pop_back();
  return answer;
}

Result<std::uint64_t> OwnRegistry::barrier(std::string_view node, std::string_view value) {
  const auto bytes = std::as_bytes(std::span(value));
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{keys_.barrier(node), {bytes.begin(), bytes.end()}, 0});
  WEFT_TRY(etcd::TxnAnswer answer, change(std::move(txn)));
  if (!answer.succeeded) return Error{Errc::busy, "the registry was away for a moment; try again"};
  return answer.header.revision;
}

Result<std::optional<std::uint64_t>> OwnRegistry::put_again(std::string_view model, std::uint64_t number,
                                                            const MirroredVersion& version, std::uint64_t revision) {
  const std::string key = keys_.version(model, number);
  std::vector<std::byte> value = seal(version, keys_.bound(key));
  if (value.size() > limits::kRegistryRecordMax)
    return Error{Errc::invalid, fmt::format("{}: its metadata takes {} bytes; expected at most {}",
                                            spec_of(model, number), value.size(), limits::kRegistryRecordMax)};
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
