#include "registry/registry_list.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/plain_text.h"
#include "registry/registry_records.h"
#include "weft/names.h"
#include "weft/store/snapshot.h"
#include "weft/store/walk.h"

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
  switch (parsed.kind) {
    case KeyKind::version: {
      WEFT_TRY(MirroredVersion version, open_version(value, bound));
      return MirrorChange(named(std::move(version), std::move(parsed)));
    }
    case KeyKind::tombstone: {
      WEFT_TRY(RegistryTombstone tombstone, open_tombstone(value, bound));
      return MirrorChange(named(std::move(tombstone.version), std::move(parsed)));
    }
    case KeyKind::memory: {
      WEFT_TRY(const RegistryMoment moment, open_moment(value, bound));
      return MirrorChange(MirroredMemory{std::move(parsed.model), parsed.number, true, moment.uid});
    }
    case KeyKind::tag: {
      WEFT_TRY(RegistryTag tag, open_tag(value, bound));
      return MirrorChange(MirroredTag{std::move(parsed.model), std::move(parsed.name), tag.number, tag.time_ns,
                                      revision, std::move(tag.by), tag.uid});
    }
    default:
      return Error{Errc::internal, fmt::format("key {}: no change of names", key)};
  }
}

Status RegistryList::read(etcd::Client& client) {
  items_.clear();
  revision_ = 0;
  // In key order: d/, t/, v/, x/. keep() requires that.
  for (KeyKind kind : {KeyKind::memory, KeyKind::tag, KeyKind::version, KeyKind::tombstone})
    WEFT_CHECK(read_kind(client, kind));
  return {};
}

Status RegistryList::read_kind(etcd::Client& client, KeyKind kind) {
  etcd::RangeQuery range{keys_.all(kind), kPageMost, revision_, false, false};
  for (;;) {
    auto page = client.range(range);
    if (!page.ok() && etcd::is_too_large(page.error()) && range.limit > 1) {
      range.limit /= 2;
      continue;
    }
    if (!page.ok()) return std::move(page).error();
    if (revision_ == 0) revision_ = page->header.revision;
    range.revision = revision_;
    bool more = page->more && !page->items.empty();
    if (more) range.keys.begin = page->items.back().key + '\0';
    for (etcd::KeyValue& item : page->items) keep(std::move(item));
    if (!more) return {};
  }
}

void RegistryList::keep(etcd::KeyValue item) {
  // A change of the message puts a version's key again. The order of publishes is that of the first puts, so that
  // parents come before their children.
  const bool version = keys_.bound(item.key).starts_with("v/");
  if (items_.empty() || items_.back().key < item.key)
    items_.push_back(
        {version ? item.create_revision : item.mod_revision, std::move(item.key), std::move(item.value), false, false});
  else
    refused_(Error{Errc::io, fmt::format("registry key {}: etcd lists it out of order", item.key)});
}

RegistryList::Item* RegistryList::find(std::string_view key) {
  auto at = std::lower_bound(items_.begin(), items_.end(), key,
                             [](const Item& item, std::string_view wanted) { return item.key < wanted; });
  return at != items_.end() && at->key == key ? &*at : nullptr;
}

bool RegistryList::compare_version(const VersionRow& row) {
  if (Item* gone = find(keys_.tombstone(row.model_name, row.number))) {
    const auto said = open_tombstone(gone->value, keys_.bound(gone->key));
    const bool same = said.ok() && said->version.version.uid == row.uid;
    gone->known = same && row.removed;
    gone->here = same;
  } else if (Item* live = find(keys_.version(row.model_name, row.number))) {
    auto said = open_version(live->value, keys_.bound(live->key));
    live->known = said.ok() && said->version.uid == row.uid && said->version.manifest == row.manifest && !row.removed &&
                  said->version.described_ns <= row.described_ns;
    if (live->known && said->version.described_ns < row.described_ns) {
      copy_description(row, said->version);
      described_.push_back(named(std::move(said).value(), {KeyKind::version, row.model_name, row.number, {}}));
    }
  } else {
    if (!row.removed)
      refused_(Error{Errc::not_found, fmt::format("{}: this store has it, and the registry does not",
                                                  spec_of(row.model_name, row.number))});
    return false;
  }
  return true;
}

void RegistryList::compare_tag(const std::string& model, const TagRow& tag) {
  if (find(keys_.tag(model, tag.name)) == nullptr) gone_.push_back(MirroredTag{model, tag.name, 0, 0, revision_});
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

// Compares the versions that are in memory. One list suffices, since such versions are few.
Status RegistryList::compare_memory(Store& store) {
  WEFT_TRY(const std::unique_ptr<Snapshot> snapshot, store.snapshot());
  WEFT_TRY(const std::vector<VersionId> noted, snapshot->in_memory(0, SIZE_MAX));
  for (const VersionId id : noted) {
    WEFT_TRY(const VersionRow row, snapshot->version(id));
    Item* const item = find(keys_.memory(row.model_name, row.number));
    if (item != nullptr)
      item->known = true;
    else
      gone_.push_back(MirroredMemory{row.model_name, row.number, false});
  }
  return {};
}

Status RegistryList::compare(Store& store) {
  const auto compare_model = [&](const ModelRow& model) -> Status {
    bool all = true;
    WEFT_CHECK(each_row(store, list_versions(model.id), [&](const VersionRow& row) -> Status {
      all = compare_version(row) && all;
      return {};
    }));
    if (!all) ahead_.emplace_back(model.name, model.next_number);
    return each_row(store, list_tags(model.id), [&](const TagRow& tag) -> Status {
      compare_tag(model.name, tag);
      return {};
    });
  };
  WEFT_CHECK(each_row(store, list_models(), compare_model));
  WEFT_CHECK(compare_memory(store));
  std::erase_if(items_, [](const Item& item) { return item.known; });
  for (Item& item : items_)
    if (!item.here) item.revision = published_at(item);
  std::stable_sort(items_.begin(), items_.end(), [this](const Item& a, const Item& b) {
    const auto comes_after = [this](const Item& item) {  // tags and d/ keys come after their version
      const std::string_view key = keys_.bound(item.key);
      return key.starts_with("t/") || key.starts_with("d/");
    };
    return std::pair(a.revision, comes_after(a)) < std::pair(b.revision, comes_after(b));
  });
  next_ = 0;
  return {};
}

std::vector<MirrorChange> RegistryList::take(std::size_t count_max) {
  std::vector<MirrorChange> out;
  for (; next_ < items_.size() && out.size() < count_max; ++next_) {
    Item& item = items_[next_];
    auto change = decode_change(keys_, item.key, item.value, item.revision);
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
