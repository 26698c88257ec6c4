#include "cli/shared/catalog.h"

#include <fmt/core.h>

#include <chrono>
#include <optional>

#include "base/json_value.h"
#include "base/short_text.h"
#include "base/text.h"
#include "cli/shared/table.h"
#include "weft/model/lineage.h"
#include "weft/model/manifest.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kDaemonAnswerMax{2000};

// Returns the answer of the store's daemon to "is the mirror complete?"; nothing if no daemon answers.
std::optional<bool> mirror_is_complete(const Context& context, const Store& store) {
  const auto daemon = control::Client::connect(fmt::format("{}/{}", store.path(), control::kSocketName));
  if (!daemon.ok()) return {};
  control::CallOptions options;
  options.patience = kDaemonAnswerMax;
  const auto answer = context.ask(**daemon, "status", "", std::move(options));
  if (!answer.ok()) return {};
  const JsonValue* const registry = answer->body.find("registry");
  const auto complete = registry == nullptr ? Result<bool>(true) : registry->flag("complete");
  return !complete.ok() || *complete;
}

}  // namespace

std::string_view why_incomplete(const Context& context, const Store& store) {
  const std::optional<bool> complete = mirror_is_complete(context, store);
  if (!complete && store.cluster())
    return "weftd does not run here: versions that other nodes published since are missing in this list";
  if (complete && !*complete) return "this node is catching up with its cluster: versions may be missing in this list";
  return "";
}

Result<VersionRow> version_or_tombstone(Store& store, std::string_view spec) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  return resolve_or_tombstone(*snapshot, spec);
}

Result<VersionEntry> version_entry(Store& store, std::string_view spec) {
  VersionEntry entry;
  Renewed renewed(store);
  WEFT_TRY(Snapshot * now, renewed.get());
  WEFT_TRY(entry.row, resolve_version(*now, spec));
  WEFT_TRY(const ModelRow model, now->model(entry.row.model));
  entry.latest = entry.row.number == model.latest;
  if (!entry.row.removed) {
    WEFT_TRY(entry.durability, now->durability(entry.row));
  }
  WEFT_TRY(entry.tags, tags_of(renewed, entry.row));
  return entry;
}

std::string metrics_text(const VersionRow& row) {
  std::vector<std::string> words;
  for (const auto& [key, value] : row.metrics) words.push_back(fmt::format("{}={}", key, short_number(value)));
  return first_of(words, words.size());
}

std::string metric_text(const VersionRow& row, std::string_view name) {
  for (const auto& [key, value] : row.metrics)
    if (key == name) return short_number(value);
  return "-";
}

std::string author_text(const Author& by) {
  if (by.user.empty()) return by.node.empty() ? "-" : by.node;
  return by.node.empty() ? by.user : fmt::format("{} on {}", by.user, by.node);
}

void write_version(JsonWriter& json, const VersionEntry& version) {
  const VersionRow& row = version.row;
  json.begin_object().member("model", row.model_name).member("version", row.number);
  json.member("latest", version.latest).member("removed", row.removed);
  json.member("durability", row.removed ? "" : durability_name(version.durability)).member("lost", row.lost);
  json.member("publisher", row.publisher).member("user", row.by.user).member("node", row.by.node);
  json.member("time", utc_time(row.time_ns)).member("time_ns", row.time_ns);
  json.member("manifest", to_hex(row.manifest)).member("logical_bytes", row.logical_bytes);
  json.key("tags").begin_array();
  for (const std::string& tag : version.tags) json.value(tag);
  json.end_array().member("message", row.message).key("source").raw(source_json(row.source));
  json.key("metrics").begin_object();
  for (const auto& [key, value] : row.metrics) json.member(key, value);
  json.end_object().key("parents").begin_array();
  for (const ParentRef& parent : row.parents) json.raw(edge_json(parent));
  json.end_array().key("parents_elsewhere").begin_array();
  for (const std::string& name : row.elsewhere) json.value(name);
  json.end_array().end_object();
}

}  // namespace weft
