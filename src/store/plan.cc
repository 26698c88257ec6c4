#include "store/plan.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sys.h"
#include "base/text.h"

namespace weft {
namespace {

// Gives out what the counters have next; apply_publish moves the counters themselves.
class Allocator {
 public:
  explicit Allocator(const Counters& counters) : next_(counters.next_ino) {}
  Ino one() { return next_++; }
  Ino range(std::uint64_t count) {
    Ino base = next_;
    next_ += count;
    return base;
  }

 private:
  Ino next_;
};

Status check_component(std::string_view text, std::string_view what) {
  if (!text.empty() && text.size() <= limits::kModelComponentMax && text.find('\0') == std::string_view::npos &&
      text.find('/') == std::string_view::npos && text != "latest" && !all_digits(text))
    return {};
  return Error{Errc::invalid, fmt::format("\"{}\" cannot be part of a {}", printable(text), what)};
}

// The grammar is the command line's; this keeps keys sound.
Status check_name(std::string_view name) {
  if (name.size() > limits::kModelNameMax)
    return Error{Errc::invalid,
                 fmt::format("a model's name: expected at most {} bytes, got {}", limits::kModelNameMax, name.size())};
  for (std::string_view component : split(name, '/')) WEFT_CHECK(check_component(component, "model's name"));
  return {};
}

Error hides(std::string_view name, std::string_view other) {
  return Error{Errc::exists, fmt::format("model {} would hide {}: one is a directory of the other", name, other)};
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

Result<Ino> tag_ino(Txn& txn, ModelId model, const std::string& tag, Allocator& inos) {
  WEFT_TRY(std::optional<TagRow> row, find_row<TagRow>(txn, Table::tags, tag_key(model, tag)));
  return row ? row->ino : inos.one();
}

Status plan_tags_of(Txn& txn, PublishEvent& event, std::vector<std::string> tags, Allocator& inos) {
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  for (std::string& tag : tags) {
    WEFT_CHECK(check_component(tag, "tag"));
    WEFT_TRY(Ino ino, tag_ino(txn, event.version.model, tag, inos));
    event.tags.push_back({std::move(tag), ino});
  }
  return {};
}

Status plan_views(Txn& txn, PublishEvent& event, const VersionContent& content, Allocator& inos) {
  std::unordered_map<std::string, Ino> fresh;
  event.local.view_inos.reserve(content.views.size());
  for (const auto& view : content.views) {
    std::string key = view_key(view.key);
    WEFT_TRY(std::optional<ViewRow> row, find_row<ViewRow>(txn, Table::views, key));
    if (row) {
      event.local.view_inos.push_back(row->ino);
      continue;
    }
    auto [found, made] = fresh.try_emplace(key, 0);
    if (made) found->second = inos.one();
    event.local.view_inos.push_back(found->second);
  }
  return {};
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

Result<PublishEvent> plan_publish(Txn& txn, const PublishRequest& request, const Digest& manifest,
                                  std::vector<PackId> packs) {
  WEFT_CHECK(check_name(request.model));
  WEFT_CHECK(check_hides_none(txn, request.model));
  WEFT_TRY(std::vector<ParentRef> parents, plan_parents(txn, request.parents));
  WEFT_TRY(Counters counters, get_counters(txn));
  Allocator inos(counters);
  PublishEvent event;
  event.sequence = counters.sequence + 1;
  event.packs = std::move(packs);
  event.version.id = counters.next_version;
  event.version.model_name = request.model;
  event.version.manifest = manifest;
  event.version.time_ns = now_ns();
  event.version.logical_bytes = request.content.logical_bytes;
  event.version.message = request.message;
  event.version.metrics = request.metrics;
  event.version.parents = std::move(parents);
  event.version.elsewhere = request.elsewhere;
  event.version.tensors = request.content.views.size();
  for (const auto& view : request.content.views) event.version.tensor_bytes += view.key.content.length;
  WEFT_CHECK(plan_model(txn, event, counters, inos));
  if (event.version.number > limits::kVersionNumberMax)
    return Error{Errc::unsupported, fmt::format("{}: expected at most {} versions of one model", request.model,
                                                limits::kVersionNumberMax)};
  WEFT_CHECK(plan_directories(txn, event, inos));
  WEFT_CHECK(plan_tags_of(txn, event, request.tags, inos));
  event.local.tree_layout = request.content.tree_layout;
  event.local.ino_count = request.content.tree_nodes;
  event.local.ino_base = inos.range(event.local.ino_count);
  WEFT_CHECK(plan_views(txn, event, request.content, inos));
  return event;
}

Result<TagsEvent> plan_tags(Txn& txn, std::string_view model_name, const std::vector<TagWish>& wishes) {
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, model_name));
  if (!model) return Error{Errc::not_found, fmt::format("no model {}", printable(model_name))};
  WEFT_TRY(Counters counters, get_counters(txn));
  Allocator inos(counters);
  TagsEvent event{counters.sequence + 1, std::string(model_name), now_ns(), {}};
  for (const auto& [tag, number] : wishes) {
    WEFT_CHECK(check_component(tag, "tag"));
    WEFT_TRY(std::optional<TagRow> row, find_row<TagRow>(txn, Table::tags, tag_key(model->id, tag)));
    if (number) WEFT_CHECK(live_version(txn, model_name, *number));
    if (!number && !row)
      return Error{Errc::not_found, fmt::format("model {} has no tag {}", model_name, printable(tag))};
    if (row && number == row->number) continue;
    event.changes.push_back({tag, number.value_or(0), row ? row->ino : inos.one()});
  }
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
