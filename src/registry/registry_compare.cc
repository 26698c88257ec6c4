#include "registry/registry_compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/sha256.h"
#include "diskformat/uuid.h"
#include "registry/purges.h"
#include "weft/names.h"
#include "weft/store/commits.h"
#include "weft/store/snapshot.h"
#include "weft/store/walk.h"

namespace weft {
bool is_decided_later(const VersionRow& one, const VersionRow& other) {
  const auto order = [](const VersionRow& row) {
    return std::pair(row.removed ? row.removed_ns : row.undeleted_ns, row.removed);
  };
  return order(one) > order(other);
}

std::uint64_t Impossible::number_of(const Key& key) {
  const auto& [model, tag, uid, purge] = key;
  const std::string text = fmt::format("{}@{}@{}@{}", model, tag, uuid_text(uid), purge ? 1 : 0);
  std::uint64_t number = 0;
  std::memcpy(&number, sha256(std::as_bytes(std::span(text))).bytes.data(), sizeof number);
  return number;
}

void Impossible::add(const RegistryShare& share) {
  for (const RefusedChange& change : share.refused) add(change);
  others_.insert(share.others.begin(), share.others.end());
}

void Impossible::list(RegistryShare& share) const {
  share.others.assign(others_.begin(), others_.end());
  for (const auto& [key, why] : reasons_) {
    const auto& [model, tag, uid, purge] = key;
    if (share.refused.size() < kRefusedMax)
      share.refused.push_back({model, tag, uid, one_line(why), purge});
    else if (share.others.size() < kRefusedOthersMax)
      share.others.push_back(number_of(key));
  }
}

std::size_t Lacking::count() const {
  const std::size_t changes = versions.size() + tags.size() + purges.size();
  return changes != 0 ? changes : ahead.size();
}

std::string Lacking::text() const {
  const std::string such =
      !versions.empty() ? spec_of(versions.front().version)
      : !tags.empty()   ? fmt::format("tag {} of {}", tags.front().name, tags.front().model)
      : !purges.empty() ? fmt::format("the purge of {}", spec_of(purges.front().name.model, purges.front().name.number))
      : !ahead.empty()  ? fmt::format("the next number of {}", ahead.begin()->first)
                        : "";
  return fmt::format("{} change{}, such as {}", count(), count() == 1 ? "" : "s", such);
}

void Lacking::leave_out(const Impossible& impossible) {
  std::erase_if(versions, [&](const auto& one) { return impossible.has(one.version); });
  std::erase_if(tags, [&](const auto& one) { return impossible.has(one); });
  std::erase_if(purges, [&](const auto& one) { return impossible.has(one); });
}

// Compares two states of one version, and marks the item if there is nothing to apply. The store may have the later
// removal or undelete, and the registry the later description.
RegistryCompare::Has RegistryCompare::compare_state(const VersionRow& row, const MirroredVersion& said,
                                                    RegistryList::Item& item) {
  const VersionRow& there = said.version;
  const bool same_state = !is_decided_later(there, row);
  const bool same_text = there.removed || row.described_ns >= there.described_ns;
  item.here = there.removed;
  item.known = item.moves == 0 && same_state && same_text;
  const bool less = is_decided_later(row, there) || row.described_ns > there.described_ns;
  if (less && !row.removed && !is_decided_later(there, row)) lacking_live_.emplace(row.model_name, row.uid);
  return less ? Has::less : Has::all;
}

// Looks for the version under its number, and then under its identity. Sets its number in the registry.
RegistryCompare::Has RegistryCompare::look(const VersionRow& row, std::uint64_t& number) {
  RegistryList::Item* item = list_.find(keys_.tombstone(row.model_name, row.number));
  if (item == nullptr) item = list_.find(keys_.version(row.model_name, row.number));
  auto said = item == nullptr ? std::nullopt : version_in(keys_, *item);
  if (item != nullptr && !said) return Has::unreadable;
  if (said && said->version.uid == row.uid)
    return said->version.manifest == row.manifest ? compare_state(row, *said, *item) : Has::unreadable;
  item = list_.find(row.model_name, row.uid);
  said = item == nullptr ? std::nullopt : version_in(keys_, *item);
  if (!said && !row.removed) lacking_live_.emplace(row.model_name, row.uid);
  if (!said) return Has::nothing;
  item->moves = row.number;
  number = lacking_.moved[{row.model_name, row.number}] = said->version.number;
  return compare_state(row, *said, *item);
}

// Finds who removed the versions of rows_, and who purged versions: only the journal says that. A record that the
// journal has lost names nobody.
void RegistryCompare::read_authors(Store& store) {
  for (const VersionRow& row : rows_)
    if (row.removed) removers_[{row.model_name, row.removed_ns}];
  for (const auto& [key, purge] : lacking_.purged) purgers_[{purge.name.model, purge.time_ns}];
  for (const PurgedVersion& purge : lacking_.purges) purgers_[{purge.name.model, purge.time_ns}];
  if (removers_.empty() && purgers_.empty()) return;
  for (std::uint64_t from = 0;;) {
    auto batch = store.commits(from);
    if (!batch.ok()) return;
    for (Commit& commit : batch->commits) {
      if (commit.kind != Commit::Kind::removal && commit.kind != Commit::Kind::purge) continue;
      auto& authors = commit.kind == Commit::Kind::removal ? removers_ : purgers_;
      const auto at = authors.find({commit.model, commit.time_ns});
      if (at != authors.end()) at->second = std::move(commit.by);
    }
    if (batch->next == from) return;
    from = batch->next;
  }
}

// Compares the purges. The version of one that etcd lacks comes back with it.
Status RegistryCompare::compare_purges(Store& store) {
  WEFT_TRY(const auto purged, purged_in(store));
  std::set<VersionKey> lacking;
  for (const VersionRow& row : rows_) lacking.emplace(row.model_name, row.uid);
  for (PurgedVersion purge : purged) {
    const VersionKey key(purge.name.model, purge.uid);
    if (lacking.contains(key)) lacking_.purged.emplace(key, purge);
    const RegistryList::Item* const version = list_.find(purge.name.model, purge.uid);
    const auto parsed =
        version == nullptr ? Result<RegistryKey>(Error{Errc::not_found, {}}) : keys_.parse(version->key);
    if (!parsed.ok()) continue;
    purge.name.number = parsed->number;
    RegistryList::Item* const item = list_.find(keys_.purge(purge.name.model, purge.name.number));
    const auto record = item == nullptr ? Result<RegistryPurge>(Error{Errc::not_found, {}})
                                        : open_purge(item->value, keys_.bound(item->key));
    if (record.ok() && record->uid == purge.uid)
      item->known = true;
    else if (!lacking_.purged.contains(key))
      lacking_.purges.push_back(std::move(purge));
  }
  return {};
}

Result<MirroredVersion> RegistryCompare::completed(Store& store, VersionRow row) const {
  MirroredVersion version;
  version.tree_nodes = kTreeUnknown;
  WEFT_TRY(const std::unique_ptr<Snapshot> snapshot, store.snapshot());
  if (const auto local = snapshot->local(row.id); local.ok() && local->ino_count != 0)
    version.tree_nodes = local->ino_count;
  version.tags = row.removed_tags;
  if (const auto at = removers_.find({row.model_name, row.removed_ns}); at != removers_.end())
    version.removed_by = at->second;
  if (!row.removed) {
    WEFT_TRY(version.in_memory, lists_version(*snapshot, &Snapshot::in_memory, row.id));
  }
  version.version = std::move(row);
  return version;
}

bool RegistryCompare::will_be_live(const std::string& model, const Uuid& uid) {
  if (lacking_live_.contains({model, uid})) return true;
  const RegistryList::Item* const item = list_.find(model, uid);
  const auto said = item == nullptr ? std::nullopt : version_in(keys_, *item);
  return said && !said->version.removed;
}

void RegistryCompare::compare_tag(MirroredTag tag) {
  // A setting to a version that is removed in etcd has no effect, and that removal deletes the tag here.
  if (tag.number != 0 && !will_be_live(tag.model, tag.uid)) return;
  if (RegistryList::Item* const item = list_.find(keys_.tag(tag.model, tag.name))) {
    const auto said = open_tag(item->value, keys_.bound(item->key));
    if (!said.ok()) return;
    if (said->number == 0 && tag.number == 0) return;
    const auto there = said->order(item->revision), here = tag.order();
    item->known = there <= here;
    if (there >= here) return;
  }
  lacking_.tags.push_back(std::move(tag));
}

// Compares the tags that the store has, and those that it has deleted. `identities`: of the live versions.
Status RegistryCompare::compare_tags(Store& store, const ModelRow& model,
                                     const std::map<std::uint64_t, Uuid>& identities) {
  std::map<std::string, TagMove> last;
  WEFT_CHECK(each_row(store, list_tag_moves(model.id), [&](TagMove move) -> Status {
    const auto [at, fresh] = last.try_emplace(move.name, move);
    // A removal in another history has deleted a later setting of the tag with its version: that decides nothing.
    if (!fresh && move.stamp > at->second.stamp) at->second = std::move(move);
    return {};
  }));
  WEFT_CHECK(each_row(store, list_tags(model.id), [&](const TagRow& tag) -> Status {
    const auto move = last.extract(tag.name);
    const auto uid = identities.find(tag.number);
    if (uid == identities.end()) return {};
    // A change of the protection gives the tag a later stamp, and is no move.
    const bool is_it = !move.empty() && move.mapped().number == tag.number && move.mapped().stamp <= tag.stamp;
    compare_tag({model.name, tag.name, tag.number, tag.time_ns, tag.stamp.revision,
                 is_it ? std::move(move.mapped().by) : Author{}, uid->second, tag.stamp.generation, tag.owner});
    return {};
  }));
  for (const auto& [name, move] : last)
    if (move.number == 0 && move.stamp.revision != 0)
      compare_tag({model.name, name, 0, move.time_ns, move.stamp.revision, move.by, {}, move.stamp.generation});
  return {};
}

void RegistryCompare::note_ahead(const std::string& model, const Lacking::Ahead& wanted) {
  if (list_.next_number(model) >= wanted.next_number) return;
  Lacking::Ahead& ahead = lacking_.ahead.try_emplace(model, wanted).first->second;
  ahead.next_number = std::max(ahead.next_number, wanted.next_number);
}

Status RegistryCompare::compare_model(Store& store, const ModelRow& model) {
  std::map<std::uint64_t, Uuid> identities;  // of live versions
  const std::size_t before = rows_.size();
  WEFT_CHECK(each_row(store, list_versions(model.id), [&](VersionRow row) -> Status {
    std::uint64_t number = row.number;
    if (!row.removed) identities[row.number] = row.uid;
    const Has has = look(row, number);
    row.number = number;
    if (has != Has::less && has != Has::nothing) return {};
    rows_.push_back(std::move(row));
    return {};
  }));
  if (rows_.size() != before) note_ahead(model.name, {model.next_number, model.created_ns});
  return compare_tags(store, model, identities);
}

// Compares the versions that are in memory. One list suffices, since such versions are few.
Status RegistryCompare::compare_memory(Store& store) {
  WEFT_TRY(const std::unique_ptr<Snapshot> snapshot, store.snapshot());
  WEFT_TRY(const std::vector<VersionId> noted, snapshot->in_memory(0, SIZE_MAX));
  for (const VersionId id : noted) {
    WEFT_TRY(const VersionRow row, snapshot->version(id));
    if (lacking_live_.contains({row.model_name, row.uid})) continue;
    if (RegistryList::Item* const item = list_.find(keys_.memory(row.model_name, row.number)))
      item->known = true;
    else
      list_.forget(MirroredMemory{row.model_name, row.number, false, row.uid});
  }
  return {};
}

Result<Lacking> RegistryCompare::compare(Store& store) {
  WEFT_CHECK(each_row(store, list_models(), [&](const ModelRow& model) { return compare_model(store, model); }));
  WEFT_CHECK(compare_memory(store));
  std::ranges::sort(rows_, {}, &VersionRow::id);  // parents first
  WEFT_CHECK(compare_purges(store));
  read_authors(store);
  for (auto& [key, purge] : lacking_.purged) purge.by = purgers_[{purge.name.model, purge.time_ns}];
  for (PurgedVersion& purge : lacking_.purges) purge.by = purgers_[{purge.name.model, purge.time_ns}];
  for (VersionRow& row : rows_) {
    WEFT_TRY(MirroredVersion version, completed(store, std::move(row)));
    lacking_.versions.push_back(std::move(version));
  }
  return std::move(lacking_);
}

Result<Lacking> RegistryCompare::compare(std::span<const MirrorChange> changes) {
  for (const MirrorChange& change : changes) {
    if (const auto* version = std::get_if<MirroredVersion>(&change)) {
      MirroredVersion lacks = *version;
      const std::uint64_t next_number = lacks.version.number + 1;
      const Has has = look(version->version, lacks.version.number);
      if (has != Has::less && has != Has::nothing) continue;
      note_ahead(lacks.version.model_name, {next_number, lacks.version.time_ns});
      lacking_.versions.push_back(std::move(lacks));
    } else if (const auto* tag = std::get_if<MirroredTag>(&change)) {
      compare_tag(*tag);
    }
  }
  return std::move(lacking_);
}

}  // namespace weft
