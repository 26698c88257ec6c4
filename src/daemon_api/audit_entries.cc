#include "daemon_api/audit_entries.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

std::string name_of(const VersionName* done, const std::string& spec) {
  return done == nullptr ? spec : spec_of(done->model, done->number);
}

}  // namespace

AuditEntry audit_entry(const ImportRequest& request, const ImportReport* done) {
  if (done != nullptr) return {};
  return {"publish", request.options.name};
}

// Each publish of the bundle has an entry of its own.
AuditEntry audit_entry(const BundleImportRequest& request, const BundleImportReport* done) {
  if (done != nullptr && request.options.dry_run) return {};
  return {"import-bundle", done != nullptr ? done->uuid : request.where};
}

// Only a tag that is set leads to the version of the answer.
AuditEntry audit_entry(const TagRequest& request, const VersionName* done) {
  const char* named = request.gone ? "untag" : request.protect ? "protect" : request.unprotect ? "unprotect" : nullptr;
  if (named != nullptr) return {named, fmt::format("{}@{}", request.spec, request.tag)};
  return {"tag", fmt::format("{} {}", name_of(done, request.spec), request.tag)};
}

AuditEntry audit_entry(const NoteRequest& request, const VersionName* done) {
  return {"note", name_of(done, request.spec)};
}

AuditEntry audit_entry(const RenameRequest& request, const Nothing* /*done*/) {
  return {"rename", fmt::format("{} {}", request.model, request.to)};
}

AuditEntry audit_entry(const RemoveRequest& request, const RemoveReport* done) {
  if (done != nullptr) return {};
  return {"remove", fmt::format("{}", fmt::join(request.specs, " "))};
}

AuditEntry audit_entry(const UndeleteRequest& request, const Nothing* done) {
  if (done != nullptr) return {};
  return {"undelete", fmt::format("{}", fmt::join(request.specs, " "))};
}

AuditEntry audit_entry(const GcOptions& request, const GcOutcome* done) {
  if (done != nullptr && request.dry_run) return {};
  return {"gc", ""};
}

AuditEntry audit_entry(const PurgeRequest& request, const PurgeReport* done) {
  if (done != nullptr) return {};
  return {"purge", fmt::format("{}", fmt::join(request.specs, " "))};
}

AuditEntry audit_entry(const OriginGcRequest& request, const OriginGcReport* done) {
  if (done != nullptr && request.dry_run) return {};
  return {"gc-origin", ""};
}

AuditEntry audit_entry(const OriginFsckRequest& request, const OriginFsckReport* done) {
  if (done != nullptr && (!request.repair || done->repaired.empty())) return {};
  return {"repair-origin", ""};
}

AuditEntry audit_entry(const PrefetchRequest& request, const FetchReport* /*done*/) {
  return {"prefetch", request.spec};
}

AuditEntry audit_entry(const PinRequest& request, const Nothing* /*done*/) {
  return {request.pinned ? "pin" : "unpin", request.spec};
}

AuditEntry audit_entry(const EvictRequest& request, const EvictReport* done) {
  if (done != nullptr && request.dry_run) return {};
  return {"evict", request.spec};
}

AuditEntry audit_entry(const StageOutRequest& request, const HandOverReport* /*done*/) {
  return {request.new_origin ? "new-origin" : request.evictable ? "hand-over" : "stage-out", request.spec};
}

AuditEntry audit_entry(const RepairRequest& request, const Nothing* /*done*/) {
  return {"repair", to_hex(request.blob.root)};
}

AuditEntry audit_entry(const RestoreRequest& /*request*/, const RestoreReport* /*done*/) {
  return {"restore", ""};
}

AuditEntry audit_entry(const ReconcileWish& request, const ReconcileReport* done) {
  if (done != nullptr && request.dry_run) return {};
  return {"reconcile", ""};
}

AuditEntry audit_entry(const NodeDrainRequest& request, const NodeDrainReport* done) {
  return {"drain", done != nullptr ? done->name : request.node};
}

AuditEntry audit_entry(const NodeRemoveRequest& request, const NodeRemoveReport* done) {
  return {"remove-node", done != nullptr ? done->name : request.node};
}

AuditEntry audit_entry(const RotateKeyRequest& /*request*/, const RotateKeyReport* /*done*/) {
  return {"rotate-key", ""};
}

AuditEntry audit_entry(const PublishOutcome& done) {
  return {done.made ? "publish" : "publish-again", spec_of(done.version.model_name, done.version.number)};
}

bool may_change_and_fail(const OriginGcRequest& request) {
  return !request.dry_run;
}

bool may_change_and_fail(const OriginFsckRequest& request) {
  return request.repair;
}

bool may_change_and_fail(const RestoreRequest& /*request*/) {
  return true;
}

}  // namespace weft
