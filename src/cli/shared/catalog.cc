#include "cli/shared/catalog.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "weft/manifest.h"
#include "weft/node.h"

namespace weft {
namespace {

VersionEntry entry_of(VersionRow row, const ModelRow& model, const std::vector<TagRow>& tags) {
  VersionEntry entry{std::move(row), {}, false};
  entry.latest = entry.row.number == model.latest;
  for (const TagRow& tag : tags)
    if (tag.number == entry.row.number) entry.tags.push_back(tag.name);
  return entry;
}

Result<ModelEntry> entry_of(Snapshot& snapshot, const ModelRow& model) {
  WEFT_TRY(auto rows, snapshot.versions(model.id));
  WEFT_TRY(auto tags, snapshot.tags(model.id));
  ModelEntry entry{model, {}};
  for (VersionRow& row : rows) entry.versions.push_back(entry_of(std::move(row), model, tags));
  return entry;
}

}  // namespace

const VersionEntry* ModelEntry::latest() const {
  auto at = std::find_if(versions.begin(), versions.end(), [](const VersionEntry& version) { return version.latest; });
  return at == versions.end() ? nullptr : &*at;
}

std::size_t ModelEntry::live() const {
  return static_cast<std::size_t>(std::count_if(versions.begin(), versions.end(),
                                                [](const VersionEntry& version) { return !version.row.removed; }));
}

Result<std::vector<ModelEntry>> all_models(Store& store) {
  WEFT_TRY(auto snapshot, store.snapshot());
  WEFT_TRY(auto rows, snapshot->models());
  std::vector<ModelEntry> models;
  for (const ModelRow& row : rows) {
    WEFT_TRY(ModelEntry entry, entry_of(*snapshot, row));
    models.push_back(std::move(entry));
  }
  return models;
}

Result<ModelEntry> model_entry(Store& store, std::string_view name) {
  WEFT_CHECK(check_model_name(name));
  WEFT_TRY(auto snapshot, store.snapshot());
  auto row = snapshot->model(name);
  if (row.ok()) return entry_of(*snapshot, *row);
  if (row.error().code != Errc::not_found) return std::move(row).error();
  WEFT_CHECK(resolve_version(*snapshot, name));  // its error says which models there are
  return std::move(row).error();
}

Result<VersionEntry> version_entry(Store& store, std::string_view spec) {
  WEFT_TRY(auto snapshot, store.snapshot());
  WEFT_TRY(VersionRow row, resolve_version(*snapshot, spec));
  WEFT_TRY(ModelRow model, snapshot->model(row.model));
  WEFT_TRY(auto tags, snapshot->tags(row.model));
  return entry_of(std::move(row), model, tags);
}

std::string spec_of(const VersionRow& row) {
  return spec_of(row.model_name, row.number);
}

void write_version(JsonWriter& json, const VersionEntry& version) {
  const VersionRow& row = version.row;
  json.begin_object().member("model", row.model_name).member("version", row.number);
  json.member("latest", version.latest).member("removed", row.removed);
  json.member("time", utc_time(row.time_ns)).member("time_ns", row.time_ns);
  json.member("manifest", to_hex(row.manifest)).member("logical_bytes", row.logical_bytes);
  json.key("tags").begin_array();
  for (const std::string& tag : version.tags) json.value(tag);
  json.end_array().member("message", row.message).key("metrics").begin_object();
  for (const auto& [key, value] : row.metrics) json.member(key, value);
  json.end_object().key("parents").begin_array();
  for (const ParentRef& parent : row.parents) json.raw(edge_json(parent));
  json.end_array().key("parents_elsewhere").begin_array();
  for (const std::string& name : row.elsewhere) json.value(name);
  json.end_array().end_object();
}

}  // namespace weft
