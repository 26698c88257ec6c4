#include "daemon_api/control_messages.h"

#include <fmt/core.h>

#include "base/json.h"
#include "base/limits.h"
#include "weft/gc.h"

namespace weft {
namespace {

constexpr std::size_t kFilesBytesMax = limits::kControlMessageMax / 2;
constexpr std::size_t kFilesAtOnceMax = limits::kControlValuesMax / 8;  // each is an array of three

void write_texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

Error not_a_file(std::string_view why) {
  return Error{Errc::invalid, fmt::format("a file of an import: expected [path, place, size], got {}", why)};
}

Result<SourceFile> decode_file(const JsonValue& json) {
  const JsonValue::Array* parts = json.array();
  if (parts == nullptr || parts->size() != 3) return not_a_file(json.kind());
  const auto* path = (*parts)[0].text();
  const auto* where = (*parts)[1].text();
  const auto* size = (*parts)[2].number();
  if (path == nullptr || where == nullptr || size == nullptr) return not_a_file("other kinds");
  if (where->size() > 2 * limits::kPathMax) return not_a_file("too long a place");
  return SourceFile{*path, *where, *size, nullptr, 0};
}

Result<ParentRef> decode_parent(const JsonValue& json) {
  ParentRef parent;
  WEFT_TRY(parent.model, json.text("model"));
  WEFT_TRY(parent.number, json.number("version"));
  WEFT_TRY(parent.declared, json.flag("declared"));
  WEFT_TRY(parent.same_tensors, json.number("same_tensors"));
  WEFT_TRY(parent.same_bytes, json.number("same_bytes"));
  return parent;
}

// The figures of a gc, by name.
using Figure = std::pair<std::string_view, std::uint64_t*>;
std::vector<Figure> figures(GcOutcome& outcome) {
  GcReport& report = outcome.report;
  return {{"versions_reaped", &report.versions_reaped},
          {"versions_open", &report.versions_open},
          {"blobs_freed", &report.blobs_freed},
          {"bytes_freed", &report.bytes_freed},
          {"packs_deleted", &report.packs_deleted},
          {"packs_compacted", &report.packs_compacted},
          {"disk_bytes_freed", &report.disk_bytes_freed},
          {"busy_packs", &report.busy_packs},
          {"dead_bytes", &report.dead_bytes},
          {"packs_waiting", &report.packs_waiting},
          {"bytes_wanted", &report.bytes_wanted},
          {"stale_temporaries", &report.stale_temporaries},
          {"swept_files", &outcome.swept.files},
          {"swept_bytes", &outcome.swept.bytes},
          {"swept_parts", &outcome.swept.parts}};
}

}  // namespace

std::string encode_import(const ImportOptions& options, std::size_t files) {
  JsonWriter json;
  json.begin_object().member("name", options.name).member("inherit", options.inherit).member("add", options.add);
  write_texts(json, "parents", options.parents);
  if (options.find_parent) json.member("find_parent", *options.find_parent);
  write_texts(json, "tags", options.tags);
  json.member("message", options.message).key("metrics").begin_array();
  for (const auto& [key, value] : options.metrics) json.value(key).value(value);
  json.end_array().member("files", std::uint64_t{files}).end_object();
  return json.take();
}

Result<ImportWish> decode_import(const JsonValue& body) {
  ImportWish wish;
  ImportOptions& options = wish.options;
  WEFT_TRY(options.name, body.text("name"));
  WEFT_TRY(options.inherit, body.text("inherit"));
  WEFT_TRY(options.add, body.flag("add"));
  WEFT_TRY(options.parents, body.texts("parents"));
  options.find_parent.reset();
  if (body.find("find_parent") != nullptr) {
    WEFT_TRY(options.find_parent, body.real("find_parent"));
  }
  WEFT_TRY(options.tags, body.texts("tags"));
  WEFT_TRY(options.message, body.text("message"));
  WEFT_TRY(const auto metrics, body.texts("metrics"));
  if (metrics.size() % 2 != 0) return Error{Errc::invalid, "\"metrics\": expected pairs"};
  for (std::size_t i = 0; i < metrics.size(); i += 2) options.metrics.emplace_back(metrics[i], metrics[i + 1]);
  WEFT_TRY(wish.files, body.number("files"));
  if (wish.files == 0 || wish.files > limits::kFilesPerVersionMax)
    return Error{Errc::invalid, fmt::format("expected 1 to {} files, got {}", limits::kFilesPerVersionMax, wish.files)};
  return wish;
}

std::string encode_files(std::span<const SourceFile> files, std::size_t first) {
  JsonWriter json;
  json.begin_object().key("files").begin_array();
  const std::size_t end = std::min(files.size(), first + kFilesAtOnceMax);
  for (std::size_t i = first; i < end && (i == first || json.text().size() < kFilesBytesMax); ++i) {
    json.begin_array().value(files[i].path).value(files[i].where);
    json.value(files[i].size).end_array();
  }
  json.end_array().end_object();
  return json.take();
}

Status decode_files(const JsonValue& body, std::size_t count, std::vector<SourceFile>& files) {
  WEFT_TRY(const auto* items, body.array("files"));
  if (items->empty() || items->size() > count - files.size())
    return Error{Errc::invalid, fmt::format("expected 1 to {} files, got {}", count - files.size(), items->size())};
  for (const JsonValue& item : *items) {
    WEFT_TRY(SourceFile file, decode_file(item));
    file.number = files.size();
    files.push_back(std::move(file));
  }
  return {};
}

std::string encode_report(const ImportReport& report) {
  const VersionRow& row = report.outcome.version;
  JsonWriter json;
  json.begin_object().member("model", row.model_name).member("version", row.number);
  json.member("manifest", to_hex(row.manifest)).member("version_tensors", row.tensors).key("parents").begin_array();
  for (const ParentRef& parent : row.parents) json.raw(edge_json(parent));
  json.end_array();
  write_texts(json, "elsewhere", row.elsewhere);
  json.member("made", report.outcome.made).member("new_bytes", report.outcome.new_bytes);
  json.member("shared_bytes", report.outcome.shared_bytes).member("files", report.files);
  json.member("tensors", report.tensors).member("logical_bytes", report.logical_bytes).end_object();
  return json.take();
}

Result<ImportReport> decode_report(const JsonValue& body) {
  ImportReport report;
  VersionRow& row = report.outcome.version;
  WEFT_TRY(row.model_name, body.text("model"));
  WEFT_TRY(row.number, body.number("version"));
  WEFT_TRY(const std::string manifest, body.text("manifest"));
  const auto digest = digest_from_hex(manifest);
  if (!digest) return Error{Errc::invalid, "\"manifest\": expected 64 hexadecimal digits"};
  row.manifest = *digest;
  WEFT_TRY(row.tensors, body.number("version_tensors"));
  WEFT_TRY(const auto* parents, body.array("parents"));
  for (const JsonValue& item : *parents) {
    WEFT_TRY(ParentRef parent, decode_parent(item));
    row.parents.push_back(std::move(parent));
  }
  WEFT_TRY(row.elsewhere, body.texts("elsewhere"));
  WEFT_TRY(report.outcome.made, body.flag("made"));
  WEFT_TRY(report.outcome.new_bytes, body.number("new_bytes"));
  WEFT_TRY(report.outcome.shared_bytes, body.number("shared_bytes"));
  WEFT_TRY(report.files, body.number("files"));
  WEFT_TRY(report.tensors, body.number("tensors"));
  WEFT_TRY(report.logical_bytes, body.number("logical_bytes"));
  return report;
}

std::string encode_gc(const GcOutcome& outcome) {
  GcOutcome copy = outcome;
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, value] : figures(copy)) json.member(name, *value);
  json.end_object();
  return json.take();
}

Result<GcOutcome> decode_gc(const JsonValue& body) {
  GcOutcome outcome;
  for (const auto& [name, value] : figures(outcome)) {
    WEFT_TRY(*value, body.number(name));
  }
  return outcome;
}

}  // namespace weft
