#include "daemon_api/control_messages.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "base/errc_names.h"
#include "base/text.h"
#include "control/message.h"
#include "drafts/import_fields.h"

namespace weft {
namespace {

constexpr std::size_t kFilesBytesMax = limits::kControlMessageMax / 2;
constexpr std::size_t kFilesAtOnceMax = limits::kControlValuesMax / 12;  // a file is an array of eight values

struct FileList {
  std::vector<SourceFile> files;
};
void fields(JsonFields& f, FileList& m) {
  f("files", m.files, JsonFields::Form::row);
}

void check_key(JsonFields& f, const std::string& key) {
  if (!is_claim_key(key)) f.refuse(fmt::format("\"key\": expected {} hexadecimal digits", limits::kClaimDigits));
}

}  // namespace

void fields(JsonFields& f, SourceFile& m) {
  auto role = static_cast<std::uint64_t>(m.role);
  f("path", m.path)("where", m.where, 2 * limits::kPathMax)("size", m.size)(
      "role", role, static_cast<std::uint64_t>(FileRole::file_table));
  f("directory", m.directory)("stored", m.stored)("stored_path", m.stored_path, limits::kPathMax);
  m.role = static_cast<FileRole>(role);
  std::string expected = m.expected ? to_hex(*m.expected) : "";
  f("expected", expected);
  m.expected = digest_from_hex(expected);
  if (!m.expected && !expected.empty()) f.refuse("\"expected\": expected a SHA-256 in hexadecimal digits");
}

void fields(JsonFields& f, ParentRef& m) {
  f("model", m.model)("version", m.number)("declared", m.declared);
  f("same_tensors", m.same_tensors)("same_bytes", m.same_bytes);
}

void fields(JsonFields& f, ImportRequest& m) {
  fields(f, m.options);
  f("files", m.files, limits::kFilesPerVersionMax);
  if (m.files == 0) f.refuse("\"files\": expected at least 1, got 0");
}

void fields(JsonFields& f, ClaimRequest& m) {
  f("key", m.key);
  check_key(f, m.key);
}

void fields(JsonFields& f, AdoptRequest& m) {
  f("key", m.key)("spec", m.spec);
  check_key(f, m.key);
}

void fields(JsonFields& f, PulledRequest& m) {
  PulledAsk& ask = m.ask;
  f("node", m.node, limits::kNodeIdMax)("key", ask.key)("path", ask.path, limits::kPathMax)("note", ask.note);
  f("size", ask.size)("offset", ask.offset)("length", ask.length);
  if (const Status sound = check_pulled(ask); !sound.ok()) f.refuse(sound.error().message);
}

void fields(JsonFields& f, ImportEvent& m) {
  f("files", m.files)("open", m.open)("await", m.await)("removed", m.removed);
}

void fields(JsonFields& f, NoteRequest& m) {
  f("spec", m.spec)("message", m.change.message)("metrics", m.change.metrics, JsonFields::Form::row);
}

void fields(JsonFields& f, OpenFailure& m) {
  std::string code(errc_name(m.error.code));
  f("code", code)("message", m.error.message);
  m.error.code = errc_named(code).value_or(Errc::io);
}

// Not inline: g++ 12 would take the inlined optional for uninitialized.
void fields(JsonFields& f, Arrived& m) {
  f("end", m.end)("failure", m.failure);
}

void shown_fields(JsonFields& f, ImportReport& m) {
  PublishOutcome& outcome = m.outcome;
  VersionRow& version = outcome.version;
  f("model", version.model_name)("version", version.number)("made", outcome.made)("manifest", version.manifest);
  f("files", m.files)("tensors", m.tensors)("logical_bytes", m.logical_bytes)("new_bytes", outcome.new_bytes);
  f("shared_bytes", outcome.shared_bytes)("mounted_files", m.mounted_files)("records", m.records)(
      "parents", version.parents)("parents_elsewhere", version.elsewhere);
  f("remarks", m.remarks)("not_kept", m.not_kept)("removed", m.removed)("not_removed", m.not_removed);
}

void fields(JsonFields& f, GcOutcome& m) {
  GcReport& report = m.report;
  f("versions_reaped", report.versions_reaped)("versions_open", report.versions_open);
  f("blobs_freed", report.blobs_freed)("bytes_freed", report.bytes_freed)("packs_deleted", report.packs_deleted);
  f("packs_compacted", report.packs_compacted)("disk_bytes_freed", report.disk_bytes_freed);
  f("busy_packs", report.busy_packs)("dead_bytes", report.dead_bytes)("packs_waiting", report.packs_waiting);
  f("bytes_wanted", report.bytes_wanted)("stale_temporaries", report.stale_temporaries);
  f("assembled_files_removed", m.swept.files)("assembled_bytes_removed", m.swept.bytes);
  f("drafts", m.drafts)("undecided", m.undecided);
}

void fields(JsonFields& f, PurgeReport& m) {
  f("purged", m.purged)("shared_with", m.shared_with)("bytes_freed", m.bytes_freed);
  f("origin_bytes_freed", m.origin_bytes_freed)("origin_dead_bytes", m.origin_dead_bytes);
  f("nodes", m.nodes)("absent", m.absent)("problems", m.problems);
}

void fields(JsonFields& f, RepairRequest& m) {
  f("length", m.blob.length)("root", m.blob.root)("offset", m.offset);
  if (m.blob.length == 0) f.refuse("\"length\": expected at least 1, got 0");
}

std::string encode_files(std::span<const SourceFile> files, std::size_t first) {
  JsonWriter json;
  json.begin_object().key("files").begin_array();
  const std::size_t end = std::min(files.size(), first + kFilesAtOnceMax);
  for (std::size_t i = first; i < end && (i == first || json.text().size() < kFilesBytesMax); ++i) {
    write_fields(json.begin_array(), files[i], JsonFields::Form::row);
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

void fields(JsonFields& f, MountRequests& m) {
  f("kind", m.kind, limits::kMountKindMax)("nanoseconds", m.nanoseconds);
  for (std::uint64_t& count : m.took) f("took", count);
}

void fields(JsonFields& f, MountFigures& m) {
  f("id", m.id, limits::kMountIdMax)("directory", m.directory, limits::kMountDirectoryMax);
  f("passthrough", m.passthrough)("passthrough_refused", m.passthrough_refused)("restarts", m.restarts);
  f("requests", m.requests, JsonFields::Form::row);
  if (m.requests.size() > limits::kMountKindsMax)
    f.refuse(fmt::format("\"requests\": expected at most {} kinds, got {}", limits::kMountKindsMax, m.requests.size()));
}

}  // namespace weft
