#include "daemon_api/audit_entries.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

std::string name_of(const VersionName* done, const std::string& spec) {
  return done == nullptr ? spec : spec_of(done->model, done->number);
}

}  // namespace

std::optional<AuditEntry> audit_entry(const ImportRequest& request, const ImportReport* done) {
  if (done == nullptr) return AuditEntry{"publish", request.options.name};
  const VersionRow& row = done->outcome.version;
  return AuditEntry{done->outcome.made ? "publish" : "publish-again", spec_of(row.model_name, row.number)};
}

// Each publish of the bundle has an entry of its own.
std::optional<AuditEntry> audit_entry(const BundleImportRequest& request, const BundleImportReport* done) {
  if (done != nullptr && request.options.dry_run) return {};
  return AuditEntry{"import-bundle", done != nullptr ? done->uuid : request.where};
}

// A tag that is deleted leads to no version.
std::optional<AuditEntry> audit_entry(const TagRequest& request, const VersionName* done) {
  if (request.gone) return AuditEntry{"untag", fmt::format("{}@{}", request.spec, request.tag)};
  return AuditEntry{"tag", fmt::format("{} {}", name_of(done, request.spec), request.tag)};
}

std::optional<AuditEntry> audit_entry(const NoteRequest& request, const VersionName* done) {
  return AuditEntry{"note", name_of(done, request.spec)};
}

std::optional<AuditEntry> audit_entry(const RenameRequest& request, const Nothing* /*done*/) {
  return AuditEntry{"rename", fmt::format("{} {}", request.model, request.to)};
}

std::optional<AuditEntry> audit_entry(const RemoveRequest& request, const RemoveReport* done) {
  if (done != nullptr) return {};
  return AuditEntry{"remove", fmt::format("{}", fmt::join(request.specs, " "))};
}

std::optional<AuditEntry> audit_entry(const UndeleteRequest& request, const Nothing* done) {
  if (done != nullptr) return {};
  return AuditEntry{"undelete", fmt::format("{}", fmt::join(request.specs, " "))};
}

std::optional<AuditEntry> audit_entry(const GcOptions& request, const GcOutcome* done) {
  if (done != nullptr && request.dry_run) return {};
  return AuditEntry{"gc", ""};
}

std::optional<AuditEntry> audit_entry(const PrefetchRequest& request, const FetchReport* /*done*/) {
  return AuditEntry{"prefetch", request.spec};
}

std::optional<AuditEntry> audit_entry(const PinRequest& request, const Nothing* /*done*/) {
  return AuditEntry{request.pinned ? "pin" : "unpin", request.spec};
}

std::optional<AuditEntry> audit_entry(const EvictRequest& request, const EvictReport* done) {
  if (done != nullptr && request.dry_run) return {};
  return AuditEntry{"evict", request.spec};
}

std::optional<AuditEntry> audit_entry(const StageOutRequest& request, const HandOverReport* /*done*/) {
  return AuditEntry{request.new_origin ? "new-origin" : request.evictable ? "hand-over" : "stage-out", request.spec};
}

std::optional<AuditEntry> audit_entry(const RepairRequest& request, const Nothing* /*done*/) {
  return AuditEntry{"repair", to_hex(request.blob.root)};
}

std::optional<AuditEntry> audit_entry(const RestoreRequest& /*request*/, const RestoreReport* /*done*/) {
  return AuditEntry{"restore", ""};
}

std::optional<AuditEntry> audit_entry(const RotateKeyRequest& /*request*/, const RotateKeyReport* /*done*/) {
  return AuditEntry{"rotate-key", ""};
}

}  // namespace weft
