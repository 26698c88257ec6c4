#include "catalog/plan_parts.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
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

}  // namespace

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
    WEFT_CHECK(check_key_component(tag, "tag"));
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
    WEFT_TRY(std::optional<ViewRow> row, find_row<ViewRow>(txn, Table::views, key));
    if (row) {
      view_inos.push_back(row->ino);
      continue;
    }
    auto [found, made] = fresh.try_emplace(key, 0);
    if (made) found->second = given.size() == content.views.size() ? given[view_inos.size()] : inos.one();
    view_inos.push_back(found->second);
  }
  return view_inos;
}

}  // namespace weft
