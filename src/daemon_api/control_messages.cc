#include "daemon_api/control_messages.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/limits.h"
#include "control/message.h"

namespace weft {
namespace {

constexpr std::size_t kFilesBytesMax = limits::kControlMessageMax / 2;
constexpr std::size_t kFilesAtOnceMax = limits::kControlValuesMax / 8;  // each is an array of three

struct FileList {
  std::vector<SourceFile> files;
};

}  // namespace

void fields(JsonFields& f, std::pair<std::string, std::string>& metric) {
  f("key", metric.first);
  f("value", metric.second);
}

void fields(JsonFields& f, ImportRequest& m) {
  ImportOptions& options = m.options;
  f("name", options.name);
  f("inherit", options.inherit);
  f("add", options.add);
  f("parents", options.parents);
  f("find_parent", options.find_parent);
  f("tags", options.tags);
  f("message", options.message);
  f("metrics", options.metrics, JsonFields::Form::row);
  f("files", m.files, limits::kFilesPerVersionMax);
  if (m.files == 0) f.refuse("\"files\": expected at least 1, got 0");
}

void fields(JsonFields& f, ImportQuestion& m) {
  f("files", m.files);
  f("open", m.open);
}

void fields(JsonFields& f, SourceFile& m) {
  f("path", m.path);
  f("where", m.where, 2 * limits::kPathMax);
  f("size", m.size);
}

void fields(JsonFields& f, FileList& m) {
  f("files", m.files, JsonFields::Form::row);
}

std::string encode_files(std::span<const SourceFile> files, std::size_t first) {
  JsonWriter json;
  json.begin_object().key("files").begin_array();
  const std::size_t end = std::min(files.size(), first + kFilesAtOnceMax);
  for (std::size_t i = first; i < end && (i == first || json.text().size() < kFilesBytesMax); ++i) {
    json.begin_array();
    write_fields(json, files[i], JsonFields::Form::row);
    json.end_array();
  }
  return json.end_array().end_object().take();
}

Status decode_files(const JsonValue& body, std::size_t count, std::vector<SourceFile>& files) {
  WEFT_TRY(FileList list, decode_fields<FileList>(body));
  if (list.files.empty() || list.files.size() > count - files.size())
    return Error{Errc::invalid, fmt::format("expected 1 to {} files, got {}", count - files.size(), list.files.size())};
  std::move(list.files.begin(), list.files.end(), std::back_inserter(files));
  return {};
}

void fields(JsonFields& f, ParentRef& m) {
  f("model", m.model);
  f("version", m.number);
  f("declared", m.declared);
  f("same_tensors", m.same_tensors);
  f("same_bytes", m.same_bytes);
}

void shown_fields(JsonFields& f, ImportReport& m) {
  PublishOutcome& outcome = m.outcome;
  f("model", outcome.version.model_name);
  f("version", outcome.version.number);
  f("made", outcome.made);
  f("manifest", outcome.version.manifest);
  f("files", m.files);
  f("tensors", m.tensors);
  f("logical_bytes", m.logical_bytes);
  f("new_bytes", outcome.new_bytes);
  f("shared_bytes", outcome.shared_bytes);
  f("parents", outcome.version.parents);
  f("parents_elsewhere", outcome.version.elsewhere);
}

void fields(JsonFields& f, ImportReport& m) {
  shown_fields(f, m);
  f("version_tensors", m.outcome.version.tensors);
}

void fields(JsonFields& f, OpenFailure& m) {
  std::string code(control::errc_name(m.error.code));
  f("code", code);
  m.error.code = control::errc_named(code).value_or(Errc::io);
  f("message", m.error.message);
}

void fields(JsonFields& f, ProgressEvent& m) {
  f("phase", m.phase);
  f("total", m.total);
  f("done", m.done);
}

void fields(JsonFields& f, VersionName& m) {
  f("model", m.model);
  f("version", m.number);
}

void fields(JsonFields& f, TagRequest& m) {
  f("spec", m.spec);
  f("tag", m.tag);
  f("delete", m.gone);
}

void fields(JsonFields& f, RemoveRequest& m) {
  f("specs", m.specs);
  f("all", m.all);
}

void fields(JsonFields& f, GcOptions& m) {
  f("dry_run", m.dry_run);
  f("all", m.all);
}

void fields(JsonFields& f, GcOutcome& m) {
  GcReport& report = m.report;
  f("versions_reaped", report.versions_reaped);
  f("versions_open", report.versions_open);
  f("blobs_freed", report.blobs_freed);
  f("bytes_freed", report.bytes_freed);
  f("packs_deleted", report.packs_deleted);
  f("packs_compacted", report.packs_compacted);
  f("disk_bytes_freed", report.disk_bytes_freed);
  f("busy_packs", report.busy_packs);
  f("dead_bytes", report.dead_bytes);
  f("packs_waiting", report.packs_waiting);
  f("bytes_wanted", report.bytes_wanted);
  f("stale_temporaries", report.stale_temporaries);
  f("assembled_files_removed", m.swept.files);
  f("assembled_bytes_removed", m.swept.bytes);
}

void fields(JsonFields& f, PrefetchRequest& m) {
  f("spec", m.spec);
  f("layers", m.layers, limits::kTensorNameMax);
}

void fields(JsonFields& f, FetchReport& m) {
  f("files", m.files);
  f("bytes", m.bytes);
  f("moved_bytes", m.moved_bytes);
}

void fields(JsonFields& f, PinRequest& m) {
  f("spec", m.spec);
  f("pinned", m.pinned);
}

void fields(JsonFields& f, EvictRequest& m) {
  f("spec", m.spec);
  f("bytes_max", m.bytes_max);
  f("dry_run", m.dry_run);
}

void fields(JsonFields& f, EvictReport& m) {
  f("packs", m.packs);
  f("disk_bytes", m.disk_bytes);
  f("kept_bytes", m.kept_bytes);
  f("pinned_bytes", m.pinned_bytes);
  f("busy_bytes", m.busy_bytes);
}

void fields(JsonFields& f, StageOutRequest& m) {
  f("spec", m.spec);
  f("evictable", m.evictable);
  f("new_origin", m.new_origin);
}

void fields(JsonFields& f, HandOverReport& m) {
  f("packs", m.packs);
  f("disk_bytes", m.disk_bytes);
  f("kept_packs", m.kept_packs);
  f("kept_disk_bytes", m.kept_disk_bytes);
}

void fields(JsonFields& f, RepairRequest& m) {
  f("length", m.blob.length);
  f("root", m.blob.root);
  f("offset", m.offset);
  if (m.blob.length == 0) f.refuse("\"length\": expected at least 1, got 0");
}

void fields(JsonFields& f, RestoreRequest& m) {
  f("accept_loss", m.accept_loss);
}

void fields(JsonFields& f, RestoreReport& m) {
  f("refused", m.refused);
  f("models", m.models);
  f("versions", m.versions);
  f("removed", m.removed);
  f("tags", m.tags);
  f("packs", m.packs);
  f("bytes", m.bytes);
  f("problems", m.problems);
  f("mended", m.mended);
}

void fields(JsonFields& f, OriginReport& m) {
  f("path", m.path);
  f("packs", m.totals.packs);
  f("bytes", m.totals.bytes);
  f("manifests", m.totals.manifests);
  f("versions", m.totals.versions);
  f("waiting", m.waiting);
}

void fields(JsonFields& f, PeerEntry& m) {
  f("node", m.node);
  f("name", m.name);
  f("address", m.address);
  f("provider", m.provider);
  f("since", m.since);
}

void fields(JsonFields& f, PeerList& m) {
  f("peers", m.peers);
}

}  // namespace weft
