#include "catalog/apply.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/core.h>

#include "archindex/index.h"
#include "base/limits.h"
#include "catalog/apply_names.h"
#include "catalog/content.h"
#include "catalog/release.h"
#include "index/gc_queue.h"
#include "index/manifests.h"
#include "index/version_life.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

void count_revision(Counters& counters, std::uint64_t revision) {
  if (revision != 0) counters.registry_revision = revision;
}

void count_blobs(Counters& counters, const std::vector<Range>& blobs) {
  for (const Range& run : blobs) counters.next_blob = std::max(counters.next_blob, end_of(run));
}

Status count_event(Txn& txn, const PublishEvent& event) {
  WEFT_TRY(Counters counters, get_counters(txn));
  counters.sequence = std::max(counters.sequence, event.sequence);
  count_revision(counters, event.revision);
  counters.next_version = std::max(counters.next_version, event.version.id + 1);
  counters.next_model = std::max(counters.next_model, event.version.model + 1);
  auto used = [&counters](Ino ino) { counters.next_ino = std::max(counters.next_ino, ino + 1); };
  used(event.model_ino);
  used(event.latest_ino);
  for (const NamedInode& directory : event.directories) used(directory.ino);
  for (const NamedInode& tag : event.tags) used(tag.ino);
  WEFT_CHECK(put_counters(txn, counters));
  return count_local(txn, event.local);
}

Status count_inos(Txn& txn, const std::vector<NamedInode>& directories) {
  WEFT_TRY(Counters counters, get_counters(txn));
  for (const NamedInode& directory : directories) counters.next_ino = std::max(counters.next_ino, directory.ino + 1);
  return put_counters(txn, counters);
}

Status link_parent(Txn& txn, ParentRef& parent, VersionId child) {
  parent.id = 0;
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, parent.model));
  if (!model) return {};  // a journal with damage may lack it
  WEFT_TRY(std::optional<VersionRow> row, find_version(txn, model->id, parent.number));
  if (!row) return {};
  parent.id = row->id;
  return put(txn, Table::children, key_of(row->id, child), NumberRow{row->model});
}

Status put_version(Txn& txn, VersionRow version) {
  WEFT_TRY(version.born, tick(txn));
  WEFT_CHECK(put(txn, Table::numbers, key_of(version.model, version.number), NumberRow{version.id}));
  for (ParentRef& parent : version.parents) WEFT_CHECK(link_parent(txn, parent, version.id));
  WEFT_CHECK(put_revisions(txn, version));
  return put(txn, Table::versions, key_of(version.id), version);
}

Status remove_from_model(Txn& txn, ModelRow& model, std::uint64_t removed, std::uint64_t time_ns) {
  note_change(model, time_ns);
  if (model.live != 0) --model.live;
  if (model.latest == removed) {
    WEFT_TRY(model.latest, latest_below(txn, model, removed));
    if (model.latest == 0) WEFT_CHECK(hide_model(txn, model, time_ns));
  }
  return put(txn, Table::models, model.name, model);
}

// Removes what only this node has of a version. A reaped version has no such rows.
Status remove_local(Txn& txn, VersionId version, const VersionContent* content, std::optional<std::uint64_t> released) {
  WEFT_TRY(std::optional<LocalRow> local, find_row<LocalRow>(txn, Table::locals, key_of(version)));
  if (!local) return {};
  WEFT_TRY(bool incomplete, is_incomplete(txn, version));
  if (incomplete) {
    WEFT_CHECK(enter(txn, version, VersionState::unreaped));
    local->blobs.clear();
    local->view_inos.clear();  // an incomplete version is not counted in any view, so gc must not subtract it
    return put(txn, Table::locals, key_of(version), *local);
  }
  if (released != 0 && content == nullptr) return Error{Errc::internal, "a removal without the version's content"};
  if (released == 0) {
    WEFT_CHECK(enter(txn, version, VersionState::releasing));
    return {};
  }
  WEFT_CHECK(check_shape(txn, *local, *content));
  const ContentRelease content_release(version, *local, *content);
  const bool large = content_release.held_steps() > limits::kBatchRows;
  const std::uint64_t steps = released.value_or(large ? 0 : kAllHeld);
  WEFT_CHECK(enter(txn, version, steps == kAllHeld ? VersionState::unreaped : VersionState::releasing));
  if (steps == kAllHeld) return content_release.release(txn, 0, content_release.held_steps());
  WEFT_CHECK(content_release.release(txn, 0, steps));
  return set_steps(txn, version, VersionState::releasing, steps);
}

}  // namespace

Result<std::uint64_t> latest_below(Txn& txn, const ModelRow& model, std::uint64_t number) {
  while (number-- > model.first_number) {
    WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model.id, number));
    if (version && !version->removed) return number;
  }
  return std::uint64_t{0};
}

Status count_sequence(Txn& txn, std::uint64_t sequence, std::uint64_t revision) {
  WEFT_TRY(Counters counters, get_counters(txn));
  counters.sequence = std::max(counters.sequence, sequence);
  count_revision(counters, revision);
  return put_counters(txn, counters);
}

Status count_local(Txn& txn, const LocalRow& local) {
  WEFT_TRY(Counters counters, get_counters(txn));
  for (const Ino ino : local.view_inos) counters.next_ino = std::max(counters.next_ino, ino + 1);
  counters.next_ino = std::max(counters.next_ino, local.ino_base + local.ino_count);
  count_blobs(counters, local.blobs);
  return put_counters(txn, counters);
}

Result<std::uint64_t> tick(Txn& txn) {
  WEFT_TRY(Counters counters, get_counters(txn));
  ++counters.lineage_clock;
  WEFT_CHECK(put_counters(txn, counters));
  return counters.lineage_clock;
}

Status put_revisions(Txn& txn, const VersionRow& version) {
  WEFT_CHECK(put(txn, Table::revisions, revision_key(version.model, version.manifest, version.id), NumberRow{0}));
  if (version.source.commit.empty()) return {};
  return put(txn, Table::commits, commit_key(version.model, version.source.commit, version.id), NumberRow{0});
}

Status put_local(Txn& txn, const VersionRow& version, const LocalRow& local) {
  WEFT_CHECK(put(txn, Table::locals, key_of(version.id), local));
  InodeRow inode;
  inode.kind = InodeKind::version;
  inode.base = local.ino_base;
  inode.count = local.ino_count;
  inode.version = version.id;
  WEFT_CHECK(put(txn, Table::inodes, key_of(inode.base), inode));
  return need_manifest(txn, version.manifest);
}

Result<std::uint64_t> add_blobs(Txn& txn, std::span<const NewBlob> blobs) {
  std::uint64_t bytes = 0;
  std::set<PackId> packs;
  for (const NewBlob& blob : blobs) {
    WEFT_TRY(bool made, add_blob(txn, blob.id, blob.place));
    WEFT_CHECK(put_hint(txn, blob.id, blob.hint));
    if (made) bytes += blob.id.length;
    packs.insert(blob.place.pack);
  }
  for (const PackId pack : packs) WEFT_CHECK(queue_pack(txn, pack));
  return bytes;
}

Result<std::uint64_t> apply_publish(Txn& txn, const PublishEvent& event, const PublishInput& input) {
  WEFT_CHECK(count_event(txn, event));
  WEFT_CHECK(advance_model(txn, event));
  WEFT_CHECK(put_version(txn, event.version));
  WEFT_CHECK(set_tags_of(txn, event));
  if (input.reaped || event.was_removed()) return std::uint64_t{0};
  const VersionState state = input.content == nullptr ? VersionState::bare : VersionState::whole;
  WEFT_TRY(const VersionState before, enter(txn, event.version.id, state));
  LocalRow local = event.local;
  if (input.content != nullptr) local.outline = input.content->outline;
  WEFT_CHECK(put_local(txn, event.version, local));
  if (input.own) WEFT_CHECK(set_mark(txn, event.version.id, kUnsaved));
  const bool attached = before == VersionState::attaching;
  WEFT_TRY(std::uint64_t new_bytes, attached ? std::uint64_t{0} : add_blobs(txn, input.new_blobs));
  if (input.content == nullptr) return new_bytes;
  if (!attached) WEFT_CHECK(add_content(txn, {event.version.id, event.version.time_ns}, event.local, input));
  WEFT_CHECK(add_architecture(txn, event.version, input.content->architecture));
  return new_bytes;
}

Status apply_adoption(Txn& txn, const AdoptionEvent& event, const PublishInput& input) {
  WEFT_CHECK(count_sequence(txn, event.sequence));
  WEFT_CHECK(count_local(txn, {0, 0, event.view_inos, event.blobs, {}}));
  WEFT_TRY(bool incomplete, is_incomplete(txn, event.version));
  if (!incomplete) return {};
  WEFT_TRY(LocalRow local, need_row<LocalRow>(txn, Table::locals, key_of(event.version)));
  local.view_inos = event.view_inos;
  local.blobs = event.blobs;
  if (input.content != nullptr) local.outline = input.content->outline;
  WEFT_CHECK(put(txn, Table::locals, key_of(event.version), local));
  if (input.content == nullptr) return {};  // the rebuild could not read the manifest; keep the numbers for later
  WEFT_CHECK(add_content(txn, {event.version, event.published_ns}, local, input));
  WEFT_TRY(VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(event.version)));
  WEFT_CHECK(add_architecture(txn, version, input.content->architecture));
  WEFT_CHECK(enter(txn, event.version, VersionState::whole));
  return {};
}

std::string_view note_name(VersionNote note) {
  return note == VersionNote::pinned ? kPinned : kInMemory;
}

Status apply_note(Txn& txn, const NoteEvent& event) {
  WEFT_CHECK(count_sequence(txn, event.sequence, event.revision));
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.model));
  if (!model) return damaged(txn, fmt::format("the journal notes of model {}, which is not there", event.model));
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, event.number));
  if (!version || version->removed) return {};
  const std::string_view note = note_name(event.note);
  if (event.set && event.note == VersionNote::in_memory) WEFT_CHECK(put_note(txn, kMemoryUsed, 0));
  return event.set ? set_mark(txn, version->id, note) : clear_mark(txn, version->id, note);
}

Status apply_description(Txn& txn, const DescriptionEvent& event) {
  WEFT_CHECK(count_sequence(txn, event.sequence, event.revision));
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.model));
  if (!model) return damaged(txn, fmt::format("the journal describes model {}, which is not there", event.model));
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, event.number));
  if (!version || version->removed || version->uid != event.uid) return {};
  version->message = event.message;
  version->metrics = event.metrics;
  version->described_ns = event.time_ns;
  WEFT_TRY(version->described, tick(txn));
  WEFT_CHECK(put(txn, Table::versions, key_of(version->id), *version));
  note_change(*model, event.time_ns);
  return put(txn, Table::models, model->name, *model);
}

Status apply_purge(Txn& txn, const PurgeEvent& event) {
  WEFT_CHECK(count_sequence(txn, event.sequence, event.revision));
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, event.model));
  if (!model) return damaged(txn, fmt::format("the journal purges of model {}, which is not there", event.model));
  WEFT_TRY(const std::optional<VersionRow> version, find_version(txn, model->id, event.number));
  if (!version || !version->removed || version->uid != event.uid) return {};
  return set_purged(txn, version->id, event.time_ns);
}

Status apply_rename(Txn& txn, const RenameEvent& event) {
  WEFT_CHECK(count_sequence(txn, event.sequence));
  WEFT_CHECK(count_inos(txn, event.directories));
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.model));
  if (!model) return damaged(txn, fmt::format("the journal renames model {}, which is not there", event.model));
  WEFT_TRY(const std::optional<ModelRow> taken, find_model(txn, event.to));
  if (taken) return damaged(txn, fmt::format("the journal renames {} to {}, which is there", event.model, event.to));
  WEFT_TRY(const std::uint64_t now, tick(txn));
  WEFT_CHECK(rename_model(txn, *std::move(model), event, now));
  WEFT_TRY(Counters counters, get_counters(txn));
  counters.last_rename = now;
  return put_counters(txn, counters);
}

Status raise_counters(Txn& txn, const Counters& floors) {
  WEFT_TRY(Counters counters, get_counters(txn));
  counters.next_version = std::max(counters.next_version, floors.next_version);
  counters.next_model = std::max(counters.next_model, floors.next_model);
  counters.next_ino = std::max(counters.next_ino, floors.next_ino);
  counters.number_floor = std::max(counters.number_floor, floors.number_floor);
  return put_counters(txn, counters);
}

Status fill_numbers(Txn& txn, const ModelRow& model) {
  for (std::uint64_t number = model.first_number; number < model.next_number; ++number) {
    std::string key = key_of(model.id, number);
    WEFT_TRY(std::optional<Bytes> known, txn.get(Table::numbers, key));
    if (!known) WEFT_CHECK(put(txn, Table::numbers, key, NumberRow{kLostVersion}));
  }
  return {};
}

Status apply_repair(Txn& txn, const RepairEvent& event) {
  WEFT_CHECK(count_sequence(txn, event.sequence));
  WEFT_CHECK(raise_counters(txn, event.counters));
  for (const NumberFloor& floor : event.models) {
    WEFT_TRY(std::optional<ModelRow> model, find_model(txn, floor.model));
    if (!model) {
      WEFT_CHECK(raise_former(txn, floor));
      continue;
    }
    model->next_number = std::max(model->next_number, floor.next_number);
    WEFT_CHECK(put(txn, Table::models, model->name, *model));
  }
  return {};
}

Status apply_tags(Txn& txn, const TagsEvent& event) {
  WEFT_CHECK(count_sequence(txn, event.sequence, event.revision));
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.model));
  if (!model) return damaged(txn, fmt::format("the journal tags model {}, which is not there", event.model));
  note_change(*model, event.time_ns);
  for (const TagChange& change : event.changes) {
    WEFT_CHECK(set_tag(txn, *model, change, {event.sequence, event.time_ns, event.by, event.at}));
    if (change.number == 0) continue;
    WEFT_TRY(Counters counters, get_counters(txn));
    counters.next_ino = std::max(counters.next_ino, change.ino + 1);
    WEFT_CHECK(put_counters(txn, counters));
  }
  return put(txn, Table::models, model->name, *model);
}

namespace {

// A later removal of a version that is removed.
Status remove_again(Txn& txn, ModelRow model, VersionRow version, const RemovalEvent& event) {
  version.removed_ns = event.time_ns;
  version.lost = event.lost;
  version.removed_tags = event.tags;
  WEFT_CHECK(put(txn, Table::versions, key_of(version.id), version));
  note_change(model, event.time_ns);
  return put(txn, Table::models, model.name, model);
}

}  // namespace

Status apply_removal(Txn& txn, const RemovalEvent& event, const VersionContent* content,
                     std::optional<std::uint64_t> released) {
  WEFT_CHECK(count_sequence(txn, event.sequence, event.revision));
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.model));
  if (!model) return damaged(txn, fmt::format("the journal removes from model {}, which is not there", event.model));
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, event.number));
  const bool again = version && version->removed && version->removed_ns < event.time_ns;
  if (!version || (version->removed && !again) || version->uid != event.uid)
    return damaged(txn, fmt::format("the journal removes {}@{}, which is not there", event.model, event.number));
  if (again) return remove_again(txn, *std::move(model), *std::move(version), event);
  WEFT_CHECK(remove_local(txn, version->id, content, released));
  WEFT_CHECK(remove_architecture(txn, *version));
  WEFT_CHECK(txn.erase(Table::revisions, revision_key(version->model, version->manifest, version->id)));
  if (!version->source.commit.empty())
    WEFT_CHECK(txn.erase(Table::commits, commit_key(version->model, version->source.commit, version->id)));
  version->removed = true;
  WEFT_TRY(version->died, tick(txn));
  version->removed_ns = event.time_ns;
  version->lost = event.lost;
  version->removed_tags = event.tags;
  WEFT_CHECK(put(txn, Table::versions, key_of(version->id), *version));
  WEFT_CHECK(delete_tags_of(txn, *model, event.number, {event.sequence, event.time_ns, event.by, event.at}));
  return remove_from_model(txn, *model, event.number, event.time_ns);
}

Result<bool> add_blob(Txn& txn, const ContentId& id, const BlobPlace& place) {
  WEFT_TRY(std::optional<FoundBlob> found, find_blob(txn, id));
  if (found && (place.pack == 0 || !found->row.absent())) return false;
  if (found) {
    WEFT_CHECK(place_blob(txn, *std::move(found), place));
    return true;
  }
  WEFT_TRY(const FoundBlob made, make_blob(txn, id, place));
  WEFT_CHECK(mark_dead(txn, made.key));
  return true;
}

Status forget_place(Txn& txn, const FoundBlob& blob) {
  WEFT_TRY(std::optional<Holder> holder, first_holder(txn, blob));
  if (holder) return place_blob(txn, blob, {});
  WEFT_CHECK(txn.erase(Table::dead, blob.key));
  return erase_blob(txn, blob);
}

Status mark_dead(Txn& txn, Bytes blob_key) {
  return put(txn, Table::dead, blob_key, NumberRow{0});
}

Status count_revision(Txn& txn, std::uint64_t revision) {
  WEFT_TRY(Counters counters, get_counters(txn));
  counters.registry_revision = revision;
  return put_counters(txn, counters);
}

Status bump_sequence(Txn& txn) {
  WEFT_TRY(Counters counters, get_counters(txn));
  ++counters.sequence;
  return put_counters(txn, counters);
}

}  // namespace weft
