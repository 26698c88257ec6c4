#include "catalog/apply_names.h"

#include <algorithm>

#include "weft/names.h"

namespace weft {
namespace {

Status put_inode(Txn& txn, InodeKind kind, Ino ino, ModelId model, std::string_view name) {
  InodeRow inode;
  inode.kind = kind;
  inode.base = ino;
  inode.model = model;
  inode.name = name;
  return put(txn, Table::inodes, key_of(ino), inode);
}

// Updates a directory's time after a name in it appeared or disappeared. models/ and hub/ have no row before their
// first change.
Status touch_directory(Txn& txn, Ino ino, std::uint64_t time_ns) {
  WEFT_TRY(std::optional<InodeRow> row, find_row<InodeRow>(txn, Table::inodes, key_of(ino)));
  if (!row) {
    row.emplace();
    row->kind = InodeKind::namespace_dir;
    row->base = ino;
  }
  row->changed_ns = std::max(row->changed_ns, time_ns);
  return put(txn, Table::inodes, key_of(ino), *row);
}

Status touch_namespace(Txn& txn, std::string_view path, std::uint64_t time_ns) {
  if (path.empty()) return touch_directory(txn, kModelsIno, time_ns);
  WEFT_TRY(NumberRow ino, need_row<NumberRow>(txn, Table::dirs, path));
  return touch_directory(txn, ino.value, time_ns);
}

Status touch_hub(Txn& txn, const ModelRow& model, std::uint64_t time_ns) {
  return hub_name(model.name, model.kind) ? touch_directory(txn, kHubIno, time_ns) : Status{};
}

// Returns the number of visible models, or data sets, at or below a name.
std::uint64_t count_of(const NameRow& row, VersionKind kind) {
  return kind == VersionKind::dataset ? row.datasets : row.live - row.datasets;
}

// Shows a name in its directory, or counts one more model or data set below it. models/ shows a name if it has models,
// datasets/ if it has data sets; the directory has one time for both.
Status show(Txn& txn, std::string_view path, const NameRow& added, std::uint64_t time_ns) {
  auto [prefix, component] = split_name(path);
  std::string key = name_key(prefix, component);
  WEFT_TRY(std::optional<NameRow> row, find_row<NameRow>(txn, Table::names, key));
  const VersionKind kind = added.datasets != 0 ? VersionKind::dataset : VersionKind::model;
  if (!row || count_of(*row, kind) == 0) WEFT_CHECK(touch_namespace(txn, prefix, time_ns));
  NameRow now = added;
  if (row) {
    now.live += row->live;
    now.datasets += row->datasets;
  }
  return put(txn, Table::names, key, now);
}

Status hide(Txn& txn, std::string_view path, VersionKind kind, std::uint64_t time_ns) {
  auto [prefix, component] = split_name(path);
  std::string key = name_key(prefix, component);
  WEFT_TRY(NameRow row, need_row<NameRow>(txn, Table::names, key));
  if (count_of(row, kind) <= 1) WEFT_CHECK(touch_namespace(txn, prefix, time_ns));
  if (row.live <= 1) return txn.erase(Table::names, key);
  --row.live;
  if (kind == VersionKind::dataset) --row.datasets;
  return put(txn, Table::names, key, row);
}

Status show_model(Txn& txn, const ModelRow& model, std::uint64_t time_ns) {
  WEFT_CHECK(touch_hub(txn, model, time_ns));
  const std::uint64_t datasets = model.kind == VersionKind::dataset ? 1 : 0;
  WEFT_CHECK(show(txn, model.name, {true, model.ino, 1, datasets}, time_ns));
  for (std::string_view path = split_name(model.name).first; !path.empty(); path = split_name(path).first) {
    WEFT_TRY(NumberRow ino, need_row<NumberRow>(txn, Table::dirs, path));
    WEFT_CHECK(show(txn, path, {false, ino.value, 1, datasets}, time_ns));
  }
  return {};
}

Status make_directories(Txn& txn, const std::vector<NamedInode>& directories) {
  for (const NamedInode& directory : directories) {
    WEFT_TRY(std::optional<Bytes> known, txn.get(Table::dirs, directory.name));
    if (known) continue;
    WEFT_CHECK(put(txn, Table::dirs, directory.name, NumberRow{directory.ino}));
    WEFT_CHECK(put_inode(txn, InodeKind::namespace_dir, directory.ino, 0, directory.name));
  }
  return {};
}

Result<ModelRow> make_model(Txn& txn, const PublishEvent& event) {
  const VersionRow& version = event.version;
  std::uint64_t created_ns = event.model_created_ns != 0 ? event.model_created_ns : version.time_ns;
  WEFT_TRY(const auto former, find_row<FormerNameRow>(txn, Table::former_names, version.model_name));
  ModelRow model;
  if (former) model.first_number = model.next_number = former->next_number;
  model.id = version.model;
  model.name = version.model_name;
  model.kind = version.kind;
  model.ino = event.model_ino;
  model.latest_ino = event.latest_ino;
  model.created_ns = created_ns;
  model.changed_ns = created_ns;
  WEFT_CHECK(put(txn, Table::model_ids, key_of(model.id), ModelNameRow{model.name, 0, 0}));
  WEFT_CHECK(put_inode(txn, InodeKind::model_dir, model.ino, model.id, model.name));
  WEFT_CHECK(put_inode(txn, InodeKind::latest_link, model.latest_ino, model.id, {}));
  return model;
}

// Shows a model with its new version. A name gets another kind with its first version after all others were removed. A
// list of the registry brings that version before the removals.
Status show_as(Txn& txn, ModelRow& model, VersionKind kind, std::uint64_t time_ns) {
  if (model.latest != 0 && model.kind == kind) return {};
  if (model.latest != 0) WEFT_CHECK(hide_model(txn, model, time_ns));
  model.kind = kind;
  return show_model(txn, model, time_ns);
}

}  // namespace

Status skip_numbers(Txn& txn, const ModelRow& model, std::uint64_t number) {
  for (std::uint64_t lost = model.next_number; lost < number; ++lost)
    WEFT_CHECK(put(txn, Table::numbers, key_of(model.id, lost), NumberRow{kLostVersion}));
  return {};
}

Status hide_model(Txn& txn, const ModelRow& model, std::uint64_t time_ns) {
  WEFT_CHECK(touch_hub(txn, model, time_ns));
  for (std::string_view path = model.name; !path.empty(); path = split_name(path).first)
    WEFT_CHECK(hide(txn, path, model.kind, time_ns));
  return {};
}

void note_change(ModelRow& model, std::uint64_t time_ns) {
  model.changed_ns = std::max(model.changed_ns, time_ns);
}

Status advance_model(Txn& txn, const PublishEvent& event) {
  WEFT_CHECK(make_directories(txn, event.directories));
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.version.model_name));
  if (!model) {
    WEFT_TRY(model, make_model(txn, event));
  }
  WEFT_CHECK(skip_numbers(txn, *model, event.version.number));
  model->next_number = std::max(model->next_number, event.version.number + 1);
  // A tombstone changes the kind of no live version: if the origin has lost its record, its kind is unknown.
  const bool keeps_kind = event.was_removed() && model->latest != 0;
  const VersionKind kind = keeps_kind ? model->kind : event.version.kind;
  return add_live(txn, *std::move(model), event.version.number, kind, event.version.time_ns);
}

Status add_live(Txn& txn, ModelRow model, std::uint64_t number, VersionKind kind, std::uint64_t time_ns) {
  WEFT_CHECK(show_as(txn, model, kind, time_ns));
  model.latest = std::max(model.latest, number);
  ++model.live;
  note_change(model, time_ns);
  return put(txn, Table::models, model.name, model);
}

Status rename_model(Txn& txn, ModelRow model, const RenameEvent& event, std::uint64_t tick) {
  if (model.latest != 0) WEFT_CHECK(hide_model(txn, model, event.time_ns));
  WEFT_CHECK(txn.erase(Table::models, model.name));
  WEFT_CHECK(put(txn, Table::former_names, model.name, FormerNameRow{model.id, model.next_number}));
  WEFT_CHECK(txn.erase(Table::former_names, event.to));
  WEFT_CHECK(make_directories(txn, event.directories));
  model.name = event.to;
  note_change(model, event.time_ns);
  WEFT_CHECK(put(txn, Table::model_ids, key_of(model.id), ModelNameRow{model.name, tick, event.time_ns}));
  WEFT_CHECK(put_inode(txn, InodeKind::model_dir, model.ino, model.id, model.name));
  if (model.latest != 0) WEFT_CHECK(show_model(txn, model, event.time_ns));
  return put(txn, Table::models, model.name, model);
}

Status raise_former(Txn& txn, const NumberFloor& floor) {
  WEFT_TRY(std::optional<FormerNameRow> former, find_row<FormerNameRow>(txn, Table::former_names, floor.model));
  if (!former) return {};
  former->next_number = std::max(former->next_number, floor.next_number);
  return put(txn, Table::former_names, floor.model, *former);
}

Status set_tags_of(Txn& txn, const PublishEvent& event) {
  if (event.tags.empty()) return {};
  const VersionRow& version = event.version;
  WEFT_TRY(ModelRow model, need_row<ModelRow>(txn, Table::models, version.model_name));
  const TagCause cause{event.sequence, version.time_ns, version.by};
  for (const NamedInode& tag : event.tags) {
    WEFT_TRY(const auto known, find_row<TagRow>(txn, Table::tags, tag_key(model.id, tag.name)));
    WEFT_CHECK(set_tag(txn, model, {tag.name, version.number, tag.ino, version.uid, known ? known->owner : ""}, cause));
  }
  return put(txn, Table::models, model.name, model);
}

// Keeps the row of a deleted tag's inode: a reader that lists the model's tags may have stopped at this one. A tag that
// only gets another owner keeps its time.
Status set_tag(Txn& txn, ModelRow& model, const TagChange& change, const TagCause& cause) {
  const auto& [name, number, ino, uid, owner] = change;
  const std::string key = tag_key(model.id, name);
  WEFT_TRY(const std::optional<TagRow> known, find_row<TagRow>(txn, Table::tags, key));
  const std::uint64_t before = known ? known->number : 0;
  if (before != number)
    WEFT_CHECK(put(txn, Table::tag_moves, tag_move_key(model.id, cause.sequence, name),
                   TagMove{name, before, number, cause.time_ns, cause.by, cause.stamp}));
  if (known) WEFT_CHECK(txn.erase(Table::version_tags, version_tag_key(model.id, before, name)));
  if (number == 0) {
    if (known && model.tags != 0) --model.tags;
    return known ? txn.erase(Table::tags, key) : Status{};
  }
  if (!known) ++model.tags;
  const bool kept = before == number && cause.stamp.revision == 0;
  WEFT_CHECK(
      put(txn, Table::tags, key, TagRow{name, number, ino, kept ? known->time_ns : cause.time_ns, cause.stamp, owner}));
  WEFT_CHECK(put(txn, Table::version_tags, version_tag_key(model.id, number, name), NumberRow{0}));
  return put_inode(txn, InodeKind::tag_link, ino, model.id, name);
}

Result<std::vector<std::string>> tags_of(Txn& txn, ModelId model, std::uint64_t number) {
  const std::string prefix = version_tag_key(model, number, {});
  std::vector<std::string> tags;
  WEFT_CHECK(each_entry(txn, Table::version_tags, prefix, [&](const Entry& entry) -> Status {
    tags.emplace_back(entry.key.substr(prefix.size()));
    return {};
  }));
  return tags;
}

Status delete_tags_of(Txn& txn, ModelRow& model, std::uint64_t number, const TagCause& cause) {
  WEFT_TRY(const std::vector<std::string> gone, tags_of(txn, model.id, number));
  for (const std::string& name : gone) WEFT_CHECK(set_tag(txn, model, {name, 0}, cause));
  return {};
}

}  // namespace weft
