#include "catalog/plan.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "catalog/apply.h"
#include "catalog/apply_names.h"
#include "catalog/attach.h"
#include "catalog/content_references.h"
#include "diskformat/uuid.h"
#include "index/blobs.h"
#include "os/sys.h"
#include "weft/bytes/run_list.h"
#include "weft/names.h"

namespace weft {
namespace {

Error hides(std::string_view name, std::string_view other) {
  return Error{Errc::exists, fmt::format("model {} would hide {}: one is a directory of the other", name, other)};
}

Result<Ino> tag_ino(Txn& txn, ModelId model, const std::string& tag, Allocator& inos) {
  WEFT_TRY(std::optional<TagRow> row, find_row<TagRow>(txn, Table::tags, tag_key(model, tag)));
  return row ? row->ino : inos.one();
}

Error no_tag(std::string_view model, std::string_view tag) {
  return Error{Errc::not_found, fmt::format("model {} has no tag {}", model, printable(tag))};
}

Status check_owners(Txn& txn, const std::string& name, ModelId model, const std::vector<std::string>& tags,
                    const Author& by) {
  for (const std::string& tag : tags) {
    WEFT_TRY(const std::optional<TagRow> row, find_row<TagRow>(txn, Table::tags, tag_key(model, tag)));
    if (row) WEFT_CHECK(check_tag_owner(name, tag, row->owner, by));
  }
  return {};
}

// Returns the present name of the model that had this version under this name. The model may have been renamed since
// the publish chose its parents.
Result<std::string> name_with(Txn& txn, const ParentRef& parent) {
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, parent.model));
  if (model && parent.number >= model->first_number) return parent.model;
  WEFT_TRY(const std::optional<ModelRow> renamed, find_renamed(txn, parent.model));
  return renamed ? renamed->name : parent.model;
}

// Leaves out a parent that weft itself found, if it was removed meanwhile. A declared parent must be live.
Result<std::vector<ParentRef>> plan_parents(Txn& txn, const std::vector<ParentRef>& wanted) {
  std::vector<ParentRef> parents;
  for (ParentRef parent : wanted) {
    WEFT_TRY(parent.model, name_with(txn, parent));
    auto row = live_version(txn, parent.model, parent.number);
    bool gone = !row.ok() && row.error().code == Errc::not_found && !parent.declared;
    if (!row.ok() && !gone) return std::move(row).error();
    if (!gone) parents.push_back(std::move(parent));
  }
  return parents;
}

// True if `path` is the name or a directory of it.
bool leads_to(std::string_view path, std::string_view name) {
  return name.starts_with(path) && (name.size() == path.size() || name[path.size()] == '/');
}

// Errc::exists: another model has this name, or had it and used numbers. The numbers of a name are not used again.
Status check_unused_name(Txn& txn, std::string_view name, const ModelRow& by) {
  WEFT_TRY(const std::optional<ModelRow> known, find_model(txn, name));
  constexpr std::string_view kWanted = "expected a name that no other model has had";
  if (known && known->latest != 0)
    return Error{Errc::exists, fmt::format("{} is the name of another {}: {}", name, kind_name(known->kind), kWanted)};
  if (known)
    return Error{
        Errc::exists,
        fmt::format("{} was the name of removed versions: {}, because numbers are not used again", name, kWanted)};
  WEFT_TRY(const std::optional<ModelRow> renamed, find_renamed(txn, name));
  if (!renamed || renamed->id == by.id) return {};
  return Error{Errc::exists, fmt::format("{} was renamed to {}: {}, because numbers are not used again", name,
                                         renamed->name, kWanted)};
}

// Errc::exists: a version has or had this number, or a model that was renamed since had the name and used the number.
Status check_unused_number(Txn& txn, std::string_view model_name, std::uint64_t number) {
  const auto used = [&](std::string_view by) {
    return Error{Errc::exists, fmt::format("{}: expected a number that no version has had, got one of {}",
                                           spec_of(model_name, number), by)};
  };
  if (number == 0 || number > limits::kVersionNumberMax)
    return Error{Errc::invalid, fmt::format("{}: expected a number from 1 to {}, got {}", model_name,
                                            limits::kVersionNumberMax, number)};
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, model_name));
  const std::uint64_t next = model ? model->next_number : 1;
  if (number > next + limits::kSkippedNumbersMax)
    return Error{Errc::invalid, fmt::format("{}: expected a number up to {} after the last one, got {} more",
                                            model_name, limits::kSkippedNumbersMax, number - next)};
  if (model && number < model->first_number) return used("a model that was renamed");
  if (model) {
    WEFT_TRY(const std::optional<VersionRow> known, find_version(txn, model->id, number));
    return known ? Status{used(known->removed ? "a removed version" : "another version")} : Status{};
  }
  WEFT_TRY(const auto former, find_row<FormerNameRow>(txn, Table::former_names, model_name));
  return former && number < former->next_number ? Status{used("a model that was renamed")} : Status{};
}

// Returns what another store's record says of the version itself, without that store's ids and states.
VersionRow facts_of(VersionRow row) {
  row.id = row.model = row.born = row.died = row.described = row.undeleted = row.renamed = row.renamed_ns = 0;
  row.removed = false;
  row.removed_ns = 0;
  row.lost.clear();
  row.removed_tags.clear();
  row.publisher.clear();
  for (ParentRef& parent : row.parents) parent.id = 0;
  return row;
}

}  // namespace

Status Allocator::check_room() const {
  if (next_ <= limits::kStoredInoMax) return {};
  return Error{Errc::unsupported,
               fmt::format("the store is full: expected inode numbers up to {}, got {}", limits::kStoredInoMax, next_)};
}

Status check_ids(const VersionRow& version) {
  if (version.id <= limits::kIdMax && version.model <= limits::kIdMax) return {};
  return Error{Errc::unsupported, fmt::format("{}: the store is full: it has numbered {} versions and {} models, "
                                              "expected at most {}",
                                              version.model_name, version.id - 1, version.model - 1, limits::kIdMax)};
}

Status check_hides_none(Txn& txn, std::string_view name, std::string_view leaving) {
  for (std::string_view path = name; !path.empty(); path = split_name(path).first) {
    auto [prefix, component] = split_name(path);
    WEFT_TRY(std::optional<NameRow> row, find_row<NameRow>(txn, Table::names, name_key(prefix, component)));
    bool same = path.size() == name.size();
    const bool leaves = row && row->live == 1 && leads_to(path, leaving);
    if (row && row->is_model != same && !leaves)
      return hides(name, same ? fmt::format("models in {}/", path) : std::string(path));
  }
  return {};
}

Status check_kind(Txn& txn, std::string_view name, VersionKind kind) {
  WEFT_TRY(const std::optional<ModelRow> known, find_model(txn, name));
  if (!known || known->latest == 0 || known->kind == kind) return {};
  return Error{Errc::exists, fmt::format("{} is the name of a {}: expected the name of a {}", printable(name),
                                         kind_name(known->kind), kind_name(kind))};
}

Status plan_model(Txn& txn, PublishEvent& event, const Counters& counters, Allocator& inos) {
  VersionRow& version = event.version;
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, version.model_name));
  if (model) {
    version.model = model->id;
    version.number = model->next_number;
    event.model_ino = model->ino;
    event.latest_ino = model->latest_ino;
    event.model_created_ns = model->created_ns;
    return {};
  }
  WEFT_TRY(const auto former, find_row<FormerNameRow>(txn, Table::former_names, version.model_name));
  version.model = counters.next_model;
  version.number = std::max(counters.number_floor + 1, former ? former->next_number : std::uint64_t{1});
  event.model_created_ns = version.time_ns;
  event.model_ino = inos.one();
  event.latest_ino = inos.one();
  return {};
}

Result<std::vector<NamedInode>> plan_directories(Txn& txn, std::string_view model, Allocator& inos) {
  std::vector<NamedInode> directories;
  for (std::string_view path = split_name(model).first; !path.empty(); path = split_name(path).first) {
    WEFT_TRY(std::optional<NumberRow> known, find_row<NumberRow>(txn, Table::dirs, path));
    directories.push_back({std::string(path), known ? known->value : inos.one()});
  }
  return directories;
}

Status plan_tags_of(Txn& txn, PublishEvent& event, std::vector<std::string> tags, Allocator& inos) {
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  for (std::string& tag : tags) {
    WEFT_CHECK(check_key_tag(tag));
    WEFT_TRY(Ino ino, tag_ino(txn, event.version.model, tag, inos));
    event.tags.push_back({std::move(tag), ino});
  }
  return {};
}

Result<std::vector<Ino>> plan_views(Txn& txn, const VersionContent& content, Allocator& inos,
                                    const std::vector<Ino>& given) {
  const std::vector<ViewKey>& views = content.views;
  const ContentReferences references(content);
  std::vector<Ino> view_inos(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (references.first_alike(i) != i) {
      view_inos[i] = view_inos[references.first_alike(i)];
      continue;
    }
    WEFT_TRY(const std::optional<NumberRow> known, find_row<NumberRow>(txn, Table::views, view_key(views[i])));
    view_inos[i] = known ? known->value : given.size() == views.size() ? given[i] : inos.one();
  }
  return view_inos;
}

std::vector<std::uint64_t> numbers_in(const std::vector<Range>& runs) {
  std::vector<std::uint64_t> numbers;
  for (const Range& run : runs)
    for (std::uint64_t i = 0; i < run.length; ++i) numbers.push_back(run.offset + i);
  return numbers;
}

Result<std::vector<Range>> plan_blobs(Txn& txn, const VersionContent& content, std::uint64_t next,
                                      const std::vector<Range>& given) {
  const ContentReferences references(content);
  const std::vector<std::uint64_t> before = numbers_in(given);
  std::vector<Range> runs;
  for (std::uint32_t place = 0; place < references.blob_count(); ++place) {
    WEFT_TRY(const std::optional<FoundBlob> known, find_blob(txn, references.blob(place)));
    const bool numbered = known && known->row.number != 0;
    const bool again = !numbered && before.size() == references.blob_count();
    append_run(runs, Range{numbered ? known->row.number : again ? before[place] : next, 1});
    if (!numbered && !again) ++next;
  }
  return runs;
}

Result<VersionRow> plan_version(Txn& txn, const PublishRequest& request, const Digest& manifest) {
  WEFT_CHECK(check_key_name(request.model));
  WEFT_CHECK(check_hides_none(txn, request.model));
  WEFT_CHECK(check_kind(txn, request.model, request.content.kind));
  VersionRow version;
  if (request.given) {
    WEFT_CHECK(check_unused_number(txn, request.model, request.given->number));
    version = facts_of(*request.given);
  } else {
    WEFT_TRY(version.parents, plan_parents(txn, request.parents));
    version.time_ns = now_ns();
    version.message = request.message;
    version.source = request.source;
    version.metrics = request.metrics;
    version.elsewhere = request.elsewhere;
  }
  version.model_name = request.model;
  version.manifest = manifest;
  if (!request.given || version.uid.empty()) version.uid = random_id();
  version.logical_bytes = request.content.logical_bytes;
  version.kind = request.content.kind;
  version.tensors = request.content.views.size();
  version.tensor_bytes = 0;
  for (const auto& view : request.content.views) version.tensor_bytes += view.content.length;
  return version;
}

Result<PublishEvent> plan_publish(Txn& txn, const PublishRequest& request, const Digest& manifest,
                                  std::vector<PackId> packs, const TakenContent* taken) {
  PublishEvent event;
  WEFT_TRY(event.version, plan_version(txn, request, manifest));
  WEFT_TRY(Counters counters, get_counters(txn));
  Allocator inos(counters);
  event.sequence = counters.sequence + 1;
  event.packs = std::move(packs);
  event.version.by = request.by;
  event.version.id = taken != nullptr ? taken->version : counters.next_version;
  if (taken != nullptr) event.version.time_ns = taken->time_ns;
  WEFT_CHECK(plan_model(txn, event, counters, inos));
  if (request.given) event.version.number = request.given->number;
  if (event.version.number > limits::kVersionNumberMax)
    return Error{Errc::unsupported, fmt::format("{}: expected at most {} versions of one model", request.model,
                                                limits::kVersionNumberMax)};
  WEFT_CHECK(check_ids(event.version));
  WEFT_TRY(event.directories, plan_directories(txn, event.version.model_name, inos));
  WEFT_CHECK(plan_tags_of(txn, event, request.tags, inos));
  WEFT_CHECK(check_owners(txn, request.model, event.version.model, request.tags, request.by));
  event.local.ino_count = request.content.tree_nodes;
  event.local.ino_base = inos.range(event.local.ino_count);
  WEFT_CHECK(inos.check_room());
  if (taken != nullptr) {
    event.local.view_inos = taken->view_inos;
    event.local.blobs = taken->blobs;
    return event;
  }
  WEFT_TRY(event.local.view_inos, plan_views(txn, request.content, inos));
  WEFT_TRY(event.local.blobs, plan_blobs(txn, request.content, counters.next_blob));
  WEFT_CHECK(inos.check_room());
  return event;
}

Result<TagsEvent> plan_tags(Txn& txn, std::string_view model_name, const std::vector<TagWish>& wishes,
                            const Author& by) {
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, model_name));
  if (!model) return no_model(txn, model_name);
  WEFT_TRY(Counters counters, get_counters(txn));
  Allocator inos(counters);
  TagsEvent event{counters.sequence + 1, std::string(model_name), now_ns(), {}};
  event.by = by;
  for (const auto& [tag, number] : wishes) {
    WEFT_CHECK(check_key_tag(tag));
    WEFT_TRY(std::optional<TagRow> row, find_row<TagRow>(txn, Table::tags, tag_key(model->id, tag)));
    Uuid uid;
    if (number) {
      WEFT_TRY(const VersionRow version, live_version(txn, model_name, *number));
      uid = version.uid;
    }
    if (!number && !row) return no_tag(model_name, tag);
    if (row && number == row->number) continue;
    if (row) WEFT_CHECK(check_tag_owner(model_name, tag, row->owner, by));
    event.changes.push_back(
        {tag, number.value_or(0), row ? row->ino : inos.one(), uid, row && number ? row->owner : ""});
  }
  WEFT_CHECK(inos.check_room());
  return event;
}

Result<std::optional<TagsEvent>> plan_protection(Txn& txn, std::string_view model_name, std::string_view tag, bool on,
                                                 const Author& by) {
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, model_name));
  if (!model) return no_model(txn, model_name);
  WEFT_TRY(const std::optional<TagRow> row, find_row<TagRow>(txn, Table::tags, tag_key(model->id, tag)));
  if (!row) return no_tag(model_name, tag);
  WEFT_CHECK(check_tag_owner(model_name, tag, row->owner, by));
  if (on == !row->owner.empty()) return std::optional<TagsEvent>();
  WEFT_TRY(const Counters counters, get_counters(txn));
  TagsEvent event{counters.sequence + 1, std::string(model_name), now_ns(), {}};
  event.by = by;
  WEFT_TRY(const VersionRow version, live_version(txn, model_name, row->number));
  event.changes.push_back({row->name, row->number, row->ino, version.uid, on ? by.user : ""});
  return std::optional(std::move(event));
}

Result<RemovalEvent> plan_removal(Txn& txn, std::string_view model, std::uint64_t number, const Author& by) {
  WEFT_TRY(const VersionRow version, live_version(txn, model, number));
  WEFT_TRY(Counters counters, get_counters(txn));
  RemovalEvent event;
  event.sequence = counters.sequence + 1;
  event.model = model;
  event.number = number;
  event.time_ns = std::max(now_ns(), version.undeleted_ns + 1);
  event.by = by;
  event.uid = version.uid;
  WEFT_TRY(event.tags, tags_of(txn, version.model, number));
  WEFT_CHECK(check_owners(txn, version.model_name, version.model, event.tags, by));
  return event;
}

Result<std::optional<NoteEvent>> plan_note(Txn& txn, const VersionRow& version, VersionNote note, bool set) {
  WEFT_TRY(const bool already, has_note(txn, note_name(note), version.id));
  if (already == set) return std::optional<NoteEvent>();
  WEFT_TRY(const Counters counters, get_counters(txn));
  return std::optional(NoteEvent{counters.sequence + 1, note, version.model_name, version.number, set, now_ns()});
}

Result<std::optional<DescriptionEvent>> plan_description(Txn& txn, std::string_view model, std::uint64_t number,
                                                         const DescriptionChange& change) {
  WEFT_TRY(const VersionRow version, live_version(txn, model, number));
  WEFT_TRY(std::optional<VersionRow> now, described(version, change, now_ns()));
  if (!now) return std::optional<DescriptionEvent>();
  WEFT_TRY(const Counters counters, get_counters(txn));
  return std::optional(DescriptionEvent{counters.sequence + 1, std::string(model), number, std::move(now->message),
                                        std::move(now->metrics), now->described_ns, 0, version.uid});
}

// A renamed model takes its tags away from its former name, so each of them must be one that `by` may change.
Result<RenameEvent> plan_rename(Txn& txn, std::string_view name, std::string_view to, const Author& by) {
  WEFT_CHECK(check_model_name(to));
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, name));
  if (!model) return no_model(txn, name);
  if (model->latest == 0) return Error{Errc::not_found, fmt::format("all versions of {} were removed", name)};
  if (name == to) return Error{Errc::invalid, fmt::format("{}: expected another name than it has", name)};
  WEFT_CHECK(each_entry(txn, Table::tags, key_of(model->id), [&](const Entry& entry) -> Status {
    WEFT_TRY(const TagRow tag, row_from<TagRow>(txn, Table::tags, entry.key, entry.value));
    return check_tag_owner(name, tag.name, tag.owner, by);
  }));
  WEFT_CHECK(check_unused_name(txn, to, *model));
  WEFT_CHECK(check_hides_none(txn, to, name));
  WEFT_TRY(Counters counters, get_counters(txn));
  Allocator inos(counters);
  RenameEvent event{counters.sequence + 1, std::string(name), std::string(to), now_ns(), {}};
  WEFT_TRY(event.directories, plan_directories(txn, to, inos));
  WEFT_CHECK(inos.check_room());
  return event;
}

Result<VersionRow> live_version(Txn& txn, std::string_view model_name, std::uint64_t number) {
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, model_name));
  if (!model) return no_model(txn, model_name);
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, number));
  if (version && !version->removed) return std::move(*version);
  return Error{Errc::not_found,
               fmt::format("model {} has no version {}{}", model_name, number, version ? ": it was removed" : "")};
}

Result<std::optional<VersionRow>> same_as(Txn& txn, const PublishRequest& request, const Digest& manifest) {
  if (request.given) return std::optional<VersionRow>();
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, request.model));
  if (!model || model->latest == 0) return std::optional<VersionRow>();
  WEFT_TRY(VersionRow newest, live_version(txn, request.model, model->latest));
  if (newest.manifest != manifest) return std::optional<VersionRow>();
  return std::optional(std::move(newest));
}

}  // namespace weft
