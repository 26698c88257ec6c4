#include "registry/registry_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/plain_text.h"
#include "registry/registry_records.h"

namespace weft {
namespace {

constexpr std::uint64_t kPageMost = 2'000;  // keys per answer; fewer if their values are large

MirroredVersion named(MirroredVersion version, RegistryKey key) {
  version.version.model_name = std::move(key.model);
  version.version.number = key.number;
  return version;
}

}  // namespace

Result<MirrorChange> decode_change(const RegistryKeys& keys, std::string_view key, std::span<const std::byte> value,
                                   std::uint64_t revision) {
  WEFT_TRY(RegistryKey parsed, keys.parse(key));
  std::string_view bound = keys.bound(key);
  MirrorChange change;
  switch (parsed.kind) {
    case KeyKind::version: {
      WEFT_TRY(MirroredVersion version, open_version(value, bound));
      change = named(std::move(version), std::move(parsed));
      return change;
    }
    case KeyKind::tombstone: {
      WEFT_TRY(RegistryTombstone tombstone, open_tombstone(value, bound));
      tombstone.version.at.revision = revision;
      change = named(std::move(tombstone.version), std::move(parsed));
      return change;
    }
    case KeyKind::memory: {
      WEFT_TRY(const RegistryMoment moment, open_moment(value, bound));
      change = MirroredMemory{std::move(parsed.model), parsed.number, true, moment.uid};
      return change;
    }
    case KeyKind::purge: {
      WEFT_TRY(RegistryPurge purge, open_purge(value, bound));
      change = MirroredPurge{std::move(parsed.model), parsed.number, purge.time_ns, std::move(purge.by), purge.uid};
      return change;
    }
    case KeyKind::tag: {
      WEFT_TRY(RegistryTag tag, open_tag(value, bound));
      change = MirroredTag{std::move(parsed.model),      std::move(parsed.name), tag.number, tag.time_ns,
                           tag.stamp(revision).revision, std::move(tag.by),      tag.uid,    tag.generation,
                           std::move(tag.owner)};
      return change;
    }
    default:
      return Error{Errc::internal, fmt::format("key {}: no change of names", key)};
  }
}

std::optional<MirroredVersion> version_in(const RegistryKeys& keys, const RegistryList::Item& item) {
  const std::string_view kind = keys.bound(item.key).substr(0, 2);
  if (kind != "v/" && kind != "x/") return {};
  auto change = decode_change(keys, item.key, item.value, item.revision);
  return change.ok() ? std::optional(std::get<MirroredVersion>(std::move(change).value())) : std::nullopt;
}

Status RegistryList::read(etcd::Client& client) {
  items_.clear();
  identities_.clear();
  next_numbers_.clear();
  revision_ = 0;
  // In key order: d/, p/, t/, v/, x/. keep() requires that.
  for (KeyKind kind :
       {KeyKind::memory, KeyKind::purge, KeyKind::tag, KeyKind::version, KeyKind::tombstone, KeyKind::head})
    WEFT_CHECK(read_kind(client, kind));
  WEFT_TRY(etcd::RangeAnswer history, client.range({{keys_.history(), {}}, 0, revision_, false, false}));
  history_.reset();
  if (!history.items.empty()) history_ = std::move(history.items[0]);
  return {};
}

Status RegistryList::read_kind(etcd::Client& client, KeyKind kind) {
  return etcd::each_page(client, {keys_.all(kind), kPageMost, revision_, false, false}, [&](etcd::RangeAnswer& page) {
    if (revision_ == 0) revision_ = page.header.revision;
    for (etcd::KeyValue& item : page.items) kind == KeyKind::head ? keep_head(item) : keep(std::move(item));
  });
}

void RegistryList::keep(etcd::KeyValue item) {
  // A change of the message puts a version's key again. The order of publishes is that of the first puts, so that
  // parents come before their children.
  const bool version = keys_.bound(item.key).starts_with("v/");
  if (items_.empty() || items_.back().key < item.key)
    items_.push_back({version ? item.create_revision : item.mod_revision, std::move(item.key), std::move(item.value)});
  else
    refused_(Error{Errc::io, fmt::format("registry key {}: etcd lists it out of order", item.key)});
}

void RegistryList::keep_head(const etcd::KeyValue& item) {
  const auto key = keys_.parse(item.key);
  if (!key.ok()) return;
  const auto head = open_head(item.value, keys_.bound(item.key));
  next_numbers_[key->model] = head.ok() ? head->next_number : UINT64_MAX;
}

std::uint64_t RegistryList::next_number(const std::string& model) const {
  const auto found = next_numbers_.find(model);
  return found == next_numbers_.end() ? 0 : found->second;
}

std::span<RegistryList::Item> RegistryList::below(const std::string& prefix) {
  const auto before = [](const Item& item, std::string_view wanted) { return item.key < wanted; };
  const auto begin = std::lower_bound(items_.begin(), items_.end(), prefix, before);
  auto end = begin;
  while (end != items_.end() && end->key.starts_with(prefix)) ++end;
  return {begin, end};
}

RegistryList::Item* RegistryList::find(std::string_view key) {
  auto at = std::lower_bound(items_.begin(), items_.end(), key,
                             [](const Item& item, std::string_view wanted) { return item.key < wanted; });
  return at != items_.end() && at->key == key ? &*at : nullptr;
}

RegistryList::Item* RegistryList::find(const std::string& model, const Uuid& uid) {
  const auto [at, fresh] = identities_.try_emplace(model);
  if (fresh)
    for (const std::string& prefix : {keys_.versions_of(model).begin, keys_.tombstones_of(model).begin})
      for (Item& item : below(prefix))
        if (const auto version = version_in(keys_, item)) at->second.emplace(version->version.uid, &item);
  const auto found = at->second.find(uid);
  return found == at->second.end() ? nullptr : found->second;
}

// Returns the revision at which an item comes in the order of changes: that of the publish for a version, also after
// its removal or undelete, so that parents come before their children.
std::uint64_t RegistryList::published_at(const Item& item) const {
  const std::string_view key = keys_.bound(item.key);
  std::uint64_t revision = 0;
  if (key.starts_with("x/")) {
    if (const auto tombstone = open_tombstone(item.value, key); tombstone.ok()) revision = tombstone->revision;
  } else if (key.starts_with("v/")) {
    if (const auto version = open_version(item.value, key); version.ok()) revision = version->published_at;
  }
  return revision == 0 ? item.revision : revision;
}

void RegistryList::order() {
  identities_.clear();
  std::erase_if(items_, [](const Item& item) { return item.known; });
  for (Item& item : items_)
    if (!item.here) item.revision = published_at(item);
  const auto place = [this](const Item& item) {
    const std::string_view key = keys_.bound(item.key);
    const bool comes_last = key.starts_with("t/") || key.starts_with("d/") || key.starts_with("p/");
    // A version moves to a larger number, which another one may have to leave first.
    return std::tuple(item.moves == 0, item.moves == 0 ? 0 : UINT64_MAX - number_in(item), comes_last, item.revision);
  };
  std::stable_sort(items_.begin(), items_.end(), [&](const Item& a, const Item& b) { return place(a) < place(b); });
  next_ = 0;
}

std::uint64_t RegistryList::number_in(const Item& item) const {
  const auto key = keys_.parse(item.key);
  return key.ok() ? key->number : 0;
}

std::vector<MirrorChange> RegistryList::take(std::size_t count_max) {
  std::vector<MirrorChange> out;
  for (; next_ < items_.size() && out.size() < count_max; ++next_) {
    Item& item = items_[next_];
    auto change = decode_change(keys_, item.key, item.value, item.revision);
    if (change.ok() && item.moves != 0) std::get<MirroredVersion>(*change).former.push_back(item.moves);
    if (change.ok())
      out.push_back(std::move(change).value());
    else
      refused_(change.error());
    item = {};
  }
  if (next_ == items_.size() && out.size() < count_max) {
    std::move(gone_.begin(), gone_.end(), std::back_inserter(out));
    gone_.clear();
  }
  return out;
}

}  // namespace weft
