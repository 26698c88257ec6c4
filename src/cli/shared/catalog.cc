#include "cli/shared/catalog.h"

#include <fmt/core.h>

#include <map>

#include "base/text.h"
#include "weft/listing.h"
#include "weft/manifest.h"
#include "weft/node.h"

namespace weft {
namespace {

Result<ModelEntry> entry_of(Store& store, const ModelRow& model) {
  std::map<std::uint64_t, std::vector<std::string>> tags;
  WEFT_CHECK(each_tag(store, model.id, [&](TagRow tag) -> Status {
    tags[tag.number].push_back(std::move(tag.name));
    return {};
  }));
  ModelEntry entry{model, {}};
  WEFT_CHECK(each_version(store, model.id, [&](VersionRow row) -> Status {
    const std::uint64_t number = row.number;
    entry.versions.push_back({std::move(row), std::move(tags[number]), number == model.latest});
    return {};
  }));
  return entry;
}

}  // namespace

Result<ModelRow> model_row(Store& store, std::string_view name) {
  WEFT_CHECK(check_model_name(name));
  WEFT_TRY(const auto snapshot, store.snapshot());
  auto row = snapshot->model(name);
  if (row.ok() || row.error().code != Errc::not_found) return row;
  WEFT_CHECK(resolve_version(*snapshot, name));  // its error says which models there are
  return row;
}

Result<ModelEntry> model_entry(Store& store, std::string_view name) {
  WEFT_TRY(const ModelRow row, model_row(store, name));
  return entry_of(store, row);
}

Result<VersionEntry> version_entry(Store& store, std::string_view spec) {
  VersionEntry entry;
  {
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_TRY(entry.row, resolve_version(*snapshot, spec));
    WEFT_TRY(const ModelRow model, snapshot->model(entry.row.model));
    entry.latest = entry.row.number == model.latest;
  }
  WEFT_CHECK(each_tag(store, entry.row.model, [&](TagRow tag) -> Status {
    if (tag.number == entry.row.number) entry.tags.push_back(std::move(tag.name));
    return {};
  }));
  return entry;
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
