#include "catalog/plan.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
#include "os/sys.h"
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

// A parent that was found, and removed since, is none.
Result<std::vector<ParentRef>> plan_parents(Txn& txn, const std::vector<ParentRef>& wanted) {
  std::vector<ParentRef> parents;
  for (const ParentRef& parent : wanted) {
    auto row = live_version(txn, parent.model, parent.number);
    bool gone = !row.ok() && row.error().code == Errc::not_found && !parent.declared;
    if (!row.ok() && !gone) return std::move(row).error();
    if (!gone) parents.push_back(parent);
  }
  return parents;
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

Status check_hides_none(Txn& txn, std::string_view name) {
  for (std::string_view path = name; !path.empty(); path = split_name(path).first) {
    auto [prefix, component] = split_name(path);
    WEFT_TRY(std::optional<NameRow> row, find_row<NameRow>(txn, Table::names, name_key(prefix, component)));
    bool same = path.size() == name.size();
    if (row && row->is_model != same) return hides(name, same ? fmt::format("models in {}/", path) : std::string(path));
  }
  return {};
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
  version.model = counters.next_model;
  version.number = counters.number_floor + 1;
  event.model_created_ns = version.time_ns;
  event.model_ino = inos.one();
  event.latest_ino = inos.one();
  return {};
}

Status plan_directories(Txn& txn, PublishEvent& event, Allocator& inos) {
  std::string_view path = split_name(event.version.model_name).first;
  for (; !path.empty(); path = split_name(path).first) {
    WEFT_TRY(std::optional<NumberRow> known, find_row<NumberRow>(txn, Table::dirs, path));
    event.directories.push_back({std::string(path), known ? known->value : inos.one()});
  }
  return {};
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
  std::unordered_map<std::string, Ino> fresh;
  std::vector<Ino> view_inos;
  view_inos.reserve(content.views.size());
  for (const auto& view : content.views) {
    std::string key = view_key(view.key);
    WEFT_TRY(std::optional<NumberRow> known, find_row<NumberRow>(txn, Table::views, key));
    if (known) {
      view_inos.push_back(known->value);
      continue;
    }
    auto [found, made] = fresh.try_emplace(key, 0);
    if (made) found->second = given.size() == content.views.size() ? given[view_inos.size()] : inos.one();
    view_inos.push_back(found->second);
  }
  return view_inos;
}

Result<VersionRow> plan_version(Txn& txn, const PublishRequest& request, const Digest& manifest) {
  WEFT_CHECK(check_key_name(request.model));
  WEFT_CHECK(check_hides_none(txn, request.model));
  VersionRow version;
  WEFT_TRY(version.parents, plan_parents(txn, request.parents));
  version.model_name = request.model;
  version.manifest = manifest;
  version.time_ns = now_ns();
  version.logical_bytes = request.content.logical_bytes;
  version.message = request.message;
  version.metrics = request.metrics;
  version.elsewhere = request.elsewhere;
  version.tensors = request.content.views.size();
  for (const auto& view : request.content.views) version.tensor_bytes += view.key.content.length;
  return version;
}

Result<PublishEvent> plan_publish(Txn& txn, const PublishRequest& request, const Digest& manifest,
                                  std::vector<PackId> packs) {
  PublishEvent event;
  WEFT_TRY(event.version, plan_version(txn, request, manifest));
  WEFT_TRY(Counters counters, get_counters(txn));
  Allocator inos(counters);
  event.sequence = counters.sequence + 1;
  event.packs = std::move(packs);
  event.version.id = counters.next_version;
  WEFT_CHECK(plan_model(txn, event, counters, inos));
  if (event.version.number > limits::kVersionNumberMax)
    return Error{Errc::unsupported, fmt::format("{}: expected at most {} versions of one model", request.model,
                                                limits::kVersionNumberMax)};
  WEFT_CHECK(check_ids(event.version));
  WEFT_CHECK(plan_directories(txn, event, inos));
  WEFT_CHECK(plan_tags_of(txn, event, request.tags, inos));
  event.local.ino_count = request.content.tree_nodes;
  event.local.ino_base = inos.range(event.local.ino_count);
  WEFT_TRY(event.local.view_inos, plan_views(txn, request.content, inos));
  WEFT_CHECK(inos.check_room());
  return event;
}

Result<TagsEvent> plan_tags(Txn& txn, std::string_view model_name, const std::vector<TagWish>& wishes) {
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, model_name));
  if (!model) return Error{Errc::not_found, fmt::format("no model {}", printable(model_name))};
  WEFT_TRY(Counters counters, get_counters(txn));
  Allocator inos(counters);
  TagsEvent event{counters.sequence + 1, std::string(model_name), now_ns(), {}};
  for (const auto& [tag, number] : wishes) {
    WEFT_CHECK(check_key_tag(tag));
    WEFT_TRY(std::optional<TagRow> row, find_row<TagRow>(txn, Table::tags, tag_key(model->id, tag)));
    if (number) WEFT_CHECK(live_version(txn, model_name, *number));
    if (!number && !row)
      return Error{Errc::not_found, fmt::format("model {} has no tag {}", model_name, printable(tag))};
    if (row && number == row->number) continue;
    event.changes.push_back({tag, number.value_or(0), row ? row->ino : inos.one()});
  }
  WEFT_CHECK(inos.check_room());
  return event;
}

Result<RemovalEvent> plan_removal(Txn& txn, std::string_view model, std::uint64_t number) {
  WEFT_CHECK(live_version(txn, model, number));
  WEFT_TRY(Counters counters, get_counters(txn));
  return RemovalEvent{counters.sequence + 1, std::string(model), number, now_ns()};
}

Result<VersionRow> live_version(Txn& txn, std::string_view model_name, std::uint64_t number) {
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, model_name));
  if (!model) return Error{Errc::not_found, fmt::format("no model {}", printable(model_name))};
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, number));
  if (version && !version->removed) return std::move(*version);
  return Error{Errc::not_found,
               fmt::format("model {} has no version {}{}", model_name, number, version ? ": it was removed" : "")};
}

Result<std::optional<VersionRow>> newest_with(Txn& txn, std::string_view model_name, const Digest& manifest) {
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, model_name));
  if (!model || model->latest == 0) return std::optional<VersionRow>();
  WEFT_TRY(VersionRow newest, live_version(txn, model_name, model->latest));
  if (newest.manifest != manifest) return std::optional<VersionRow>();
  return std::optional(std::move(newest));
}

}  // namespace weft
